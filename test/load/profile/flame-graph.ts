/**
 * A flame graph as one SVG file that any browser opens: each box is a function, as wide as the time that it and what it
 * calls took, below its caller; pointing at it tells the time (Brendan Gregg, The Flame Graph, CACM 59(6), 2016).
 */
import type { Frame, FrameKind, Sample } from './samples.ts'

interface Box {
  kind: FrameKind | 'thread'
  name: string
  weight: number
  children: Map<string, Box>
}

const width = 1600
const lineHeight = 17
const letterWidth = 6.6
/** Narrower boxes are left out. */
const narrowest = 0.4

const colours: Readonly<Record<Box['kind'], string>> = {
  thread: '#c9ced6',
  kernel: '#e8a19a',
  native: '#f2d08c',
  fetch: '#b7a3dd',
  javascript: '#9fcba0',
}

const box = (kind: Box['kind'], name: string): Box => ({ kind, name, weight: 0, children: new Map() })

function boxOf(samples: readonly Sample[]): Box {
  const root = box('thread', 'all')
  for (const { thread, frames, weight } of samples) {
    root.weight += weight
    let parent = childOf(root, 'thread', `thread ${thread}`)
    parent.weight += weight
    for (const { kind, name } of frames) {
      parent = childOf(parent, kind, name)
      parent.weight += weight
    }
  }
  return root
}

function childOf(parent: Box, kind: Box['kind'], name: Frame['name']): Box {
  const key = `${kind} ${name}`
  const known = parent.children.get(key)
  if (known !== undefined) return known
  const made = box(kind, name)
  parent.children.set(key, made)
  return made
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => escapes[sign] ?? sign)

/** Draws samples that stand for `total` microseconds a request. */
export function flameGraph(title: string, samples: readonly Sample[], total: number): string {
  const root = boxOf(samples)
  const scale = root.weight === 0 ? 0 : width / root.weight
  const drawn: string[] = []
  let deepest = 0
  const draw = (of: Box, x: number, depth: number) => {
    const wide = of.weight * scale
    if (wide < narrowest) return
    deepest = Math.max(deepest, depth)
    const y = (depth + 2) * lineHeight
    const time = `${((of.weight / root.weight) * total).toFixed(2)} µs`
    const share = `${((100 * of.weight) / root.weight).toFixed(1)} %`
    const letters = Math.floor((wide - 4) / letterWidth)
    const label = letters < 3 ? '' : escaped(of.name.length > letters ? `${of.name.slice(0, letters - 1)}…` : of.name)
    drawn.push(
      `<g><title>${escaped(of.name)}: ${time}, ${share}</title><rect x="${x.toFixed(1)}" y="${y}" width="${wide.toFixed(1)}" height="${lineHeight - 1}" fill="${colours[of.kind]}"/><text x="${(x + 2).toFixed(1)}" y="${y + 12}">${label}</text></g>`,
    )
    let left = x
    for (const child of [...of.children.values()].toSorted((one, other) => other.weight - one.weight)) {
      draw(child, left, depth + 1)
      left += child.weight * scale
    }
  }
  draw(root, 0, 0)
  const height = (deepest + 4) * lineHeight
  const heading = `${title}: ${total.toFixed(1)} µs a request. Green is JavaScript, violet fetch, yellow native code, red the kernel.`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="11">
<rect width="${width}" height="${height}" fill="white"/><text x="4" y="16" font-size="13">${escaped(heading)}</text>
${drawn.join('\n')}
</svg>
`
}
