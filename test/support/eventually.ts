/** The one way in which tests wait: they look again and again, and never sleep for a fixed time. */

interface Times {
  withinMs?: number
  everyMs?: number
}

/** The first looks follow one another sooner than the later ones. */
const firstPauseMs = 2

/**
 * Gives the first result of `look` that is not `false` and was not thrown. Once the time is up, throws the last error.
 * The time ends before a test's own: at that end the runner kills the processes of the whole test file, and every other
 * test of the file would fail too.
 */
export async function eventually<Result>(
  look: () => Promise<Result> | Result,
  { withinMs = 20_000, everyMs = 20 }: Times = {},
): Promise<Exclude<Result, false>> {
  const deadline = performance.now() + withinMs
  for (let pause = firstPauseMs; ; pause = Math.min(everyMs, pause * 1.5)) {
    try {
      const result = await look()
      if (isNotFalse(result)) return result
      if (performance.now() >= deadline) throw new Error(`It did not come true within ${withinMs} ms: ${look}`)
    } catch (error) {
      if (performance.now() >= deadline) throw error
    }
    await Bun.sleep(pause)
  }
}

const isNotFalse = <Result>(result: Result): result is Exclude<Result, false> => result !== false

/** Waits until `holds` gives true; `what` stands in the failure. */
export const until = async (
  what: string,
  holds: () => Promise<boolean> | boolean,
  times: Times = {},
): Promise<void> => {
  await eventually(async () => {
    if (!(await holds())) throw new Error(`Not within the time: ${what}`)
  }, times)
}
