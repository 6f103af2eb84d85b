/**
 * So many at once: whoever comes later waits, in order of arrival. Who is patient lets the others go first, and has every
 * fourth place all the same, so that a crowd keeps nobody out.
 */

/** Runs `work` once there is a place for it; where it is no longer `wanted` by then, it is left out and rejects. */
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
    // A place is handed over, so that nobody who comes now is before those who wait.
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
