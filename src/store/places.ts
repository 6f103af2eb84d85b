/** So many at once: whoever comes later waits, in order of arrival. */

/** Runs `work` once there is a place for it; where it is no longer `wanted` by then, it is left out and rejects. */
export type InPlace = <Result>(work: () => Promise<Result>, wanted: () => boolean) => Promise<Result>

export function places(count: number): InPlace {
  let free = count
  const waiting: (() => void)[] = []
  const leave = () => {
    const next = waiting.shift()
    // A place is handed over, so that nobody who comes now is before those who wait.
    if (next === undefined) free += 1
    else next()
  }
  return async (work, wanted) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      if (!wanted()) throw new DOMException('There was no place for it in time', 'TimeoutError')
      return await work()
    } finally {
      leave()
    }
  }
}
