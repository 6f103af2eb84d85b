/**
 * Waits by looking again and again, never by a fixed sleep: gives the first result that `look` returns without
 * throwing, or throws its last error once the time is up. That is before a test's own time is up: at its end the runner
 * kills what the test file has started, and every other test of the file would fail with it.
 */
export async function eventually<Result>(
  look: () => Promise<Result> | Result,
  { withinMs = 20_000, everyMs = 20 }: { withinMs?: number; everyMs?: number } = {},
): Promise<Result> {
  const deadline = performance.now() + withinMs
  for (;;) {
    try {
      return await look()
    } catch (error) {
      if (performance.now() >= deadline) throw error
    }
    await Bun.sleep(everyMs)
  }
}

/** Waits until `holds` is true; `what` says in the failure what never came. */
export const until = (
  what: string,
  holds: () => Promise<boolean> | boolean,
  times?: { withinMs?: number; everyMs?: number },
): Promise<void> =>
  eventually(async () => {
    if (!(await holds())) throw new Error(`Not within the time: ${what}`)
  }, times)
