/**
 * Reads a profile as `bun --cpu-prof` writes it (the form of Chrome's DevTools Protocol, Profiler.Profile): whose time
 * it was. What native code takes counts for the function of this repository that called it.
 */
import { z } from 'zod'

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

/** A function of this repository, or native code that nothing of it called: the loop that waits, reads and collects. */
export interface Owner {
  file: string
  name: string
}

export interface Owned extends Owner {
  /** Its part of all time, 0 to 1. */
  share: number
}

export const noAttribution: Owner = { file: 'none', name: "the runtime's own loop" }

/** The share of each owner from one moment to another, in milliseconds since the epoch, the largest first. */
export function ownersOf(text: string, sourceRoot: string, fromMs: number, untilMs: number): Owned[] {
  const { nodes, startTime, samples, timeDeltas } = profileSchema.parse(JSON.parse(text))
  const owners = ownerOfNodes(nodes, sourceRoot)
  const times = new Map<string, { owner: Owner; time: number }>()
  let [at, all] = [startTime, 0]
  for (const [index, sample] of samples.entries()) {
    const time = timeDeltas[index] ?? 0
    at += time
    if (at < fromMs * 1000 || at > untilMs * 1000) continue
    const owner = owners.get(sample) ?? noAttribution
    const key = `${owner.file} ${owner.name}`
    const known = times.get(key)
    if (known === undefined) times.set(key, { owner, time })
    else known.time += time
    all += time
  }
  const owned = [...times.values()].map(({ owner, time }) => ({ ...owner, share: time / all }))
  return owned.sort((one, other) => other.share - one.share)
}

type Nodes = z.infer<typeof profileSchema>['nodes']

/** Whose each node is: its own where it is a function of the repository, otherwise its caller's. */
function ownerOfNodes(nodes: Nodes, sourceRoot: string): Map<number, Owner> {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const isChild = new Set(nodes.flatMap(({ children = [] }) => children))
  const owners = new Map<number, Owner>()
  const below = nodes.filter(({ id }) => !isChild.has(id)).map(({ id }) => ({ id, callers: noAttribution }))
  for (let next = below.pop(); next !== undefined; next = below.pop()) {
    const node = byId.get(next.id)
    if (node === undefined) continue
    const { functionName, url } = node.callFrame
    const file = url.replace('file://', '')
    const own = file.startsWith(sourceRoot)
    const owner = own ? { file: file.slice(sourceRoot.length), name: functionName || 'anonymous' } : next.callers
    owners.set(node.id, owner)
    for (const child of node.children ?? []) below.push({ id: child, callers: owner })
  }
  return owners
}
