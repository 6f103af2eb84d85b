/**
 * Reads a profile as `bun --cpu-prof` writes it (the form of Chrome's DevTools Protocol, Profiler.Profile). It sees the
 * main thread alone, and nothing of the kernel: what JavaScript waits for in a call counts for the function that
 * called.
 */
import { z } from 'zod'
import { mainThread } from '../rig/threads.ts'
import type { Frame, Sample } from './samples.ts'

const profileSchema = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string() }),
      children: z.array(z.number()).optional(),
    }),
  ),
  /** Microseconds since the epoch. */
  startTime: z.number(),
  samples: z.array(z.number()),
  /** Microseconds between one sample and the one before it. */
  timeDeltas: z.array(z.number()),
})

type Nodes = z.infer<typeof profileSchema>['nodes']

/** The samples from one moment to another, in milliseconds since the epoch; files are named from `root` on. */
export function samplesOf(text: string, root: string, fromMs: number, untilMs: number): Sample[] {
  const { nodes, startTime, samples, timeDeltas } = profileSchema.parse(JSON.parse(text))
  const stacks = stacksOf(nodes, root)
  const weights = new Map<number, number>()
  let at = startTime
  for (const [index, sample] of samples.entries()) {
    const time = timeDeltas[index] ?? 0
    at += time
    if (at < fromMs * 1000 || at > untilMs * 1000) continue
    weights.set(sample, (weights.get(sample) ?? 0) + time)
  }
  const found = [...weights].map(([node, weight]) => ({ thread: mainThread, frames: stacks.get(node) ?? [], weight }))
  return found.filter(({ frames }) => frames.at(-1)?.name !== '(idle)')
}

/** The frames of each node and its callers, the outermost first. */
function stacksOf(nodes: Nodes, root: string): Map<number, Frame[]> {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const isChild = new Set(nodes.flatMap(({ children = [] }) => children))
  const stacks = new Map<number, Frame[]>()
  const below = nodes.filter(({ id }) => !isChild.has(id)).map(({ id }): [number, Frame[]] => [id, []])
  for (let next = below.pop(); next !== undefined; next = below.pop()) {
    const [id, callers] = next
    const node = byId.get(id)
    if (node === undefined) continue
    const { functionName, url } = node.callFrame
    const stack = functionName === '(root)' ? callers : [...callers, frameOf(functionName, url, root)]
    stacks.set(id, stack)
    for (const child of node.children ?? []) below.push([child, stack])
  }
  return stacks
}

function frameOf(name: string, url: string, root: string): Frame {
  if (url === '') return name === 'fetch' ? { kind: 'fetch', name } : { kind: 'native', name: name || 'native' }
  const file = url.replace('file://', '')
  const shown = file.startsWith(root) ? file.slice(root.length) : (file.split('/node_modules/').at(-1) ?? file)
  return { kind: 'javascript', name: `${name || 'anonymous'} ${shown}` }
}
