/**
 * Where a provider's bytes may be cut on their way: every place that a parser which trusts its chunks would trip over.
 * A plan gives the offsets at which a new piece begins.
 */
export type SplitPlan = (body: Uint8Array) => number[]

const carriageReturn = 0x0d
const lineFeed = 0x0a

/** Offsets after each frame: an SSE frame ends with an empty line. */
const frameEnds: SplitPlan = (body) => {
  const ends: number[] = []
  let lineStart = 0
  for (let index = 0; index < body.length; index++) {
    if (body[index] !== lineFeed) continue
    const lineLength = index - lineStart - (body[index - 1] === carriageReturn ? 1 : 0)
    if (lineLength === 0) ends.push(index + 1)
    lineStart = index + 1
  }
  return ends.filter((end) => end < body.length)
}

const offsets = (body: Uint8Array, take: (byte: number, index: number) => boolean): number[] =>
  Array.from(body.keys()).filter((index) => index > 0 && take(body[index] ?? 0, index))

/** A small generator with a seed, so that a failing split can be seen again. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

export const splitPlans: Readonly<Record<string, SplitPlan>> = {
  'in one piece': () => [],
  'at every frame': frameEnds,
  'in the middle of every frame': (body) => frameEnds(body).map((end) => Math.max(1, end - 7)),
  'inside every UTF-8 character': (body) => offsets(body, (byte) => (byte & 0xc0) === 0x80),
  'inside every line ending': (body) =>
    offsets(body, (byte, index) => byte === lineFeed && [carriageReturn, lineFeed].includes(body[index - 1] ?? 0)),
  'one byte at a time': (body) => offsets(body, () => true),
  'at random': (body) => {
    const next = random(body.length)
    return offsets(body, () => next() < 0.1)
  },
}

/** Cuts a body at the offsets. */
export const cut = (body: Uint8Array, at: readonly number[]): Uint8Array[] =>
  [0, ...at].map((start, index) => body.subarray(start, at[index] ?? body.length)).filter((piece) => piece.length > 0)
