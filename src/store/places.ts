/**
 * Limits how many tasks run at once; later ones wait in order of arrival. A low priority task lets the others go
 * first, but gets every fourth place, so that it is never blocked for good.
 */

/** Runs `work` once a place is free; if it is no longer `wanted` then, it is skipped and rejects. */
export type InPlace = <Result>(work: () => Promise<Result>, wanted: () => boolean, patient?: boolean) => Promise<Result>

const othersInARow = 3

export function places(count: number): InPlace {
  let free = count
  let inARow = 0
  const waiting: (() => void)[] = []
  const patientOnes: (() => void)[] = []
  const next = (): (() => void) | undefined => {
    const turn = inARow >= othersInARow || waiting.length === 0 ? patientOnes.shift() : undefined
    inARow = turn === undefined ? inARow + 1 : 0
    return turn ?? waiting.shift()
  }
  const leave = () => {
    // A place is handed over directly, so that a new task cannot overtake waiting ones.
    const chosen = next()
    if (chosen === undefined) free += 1
    else chosen()
  }
  return async (work, wanted, patient = false) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => (patient ? patientOnes : waiting).push(resolve))
    try {
      if (!wanted()) throw new DOMException('There was no place for it in time', 'TimeoutError')
      return await work()
    } finally {
      leave()
    }
  }
}
