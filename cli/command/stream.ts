import { Failure } from '../../src/failure.ts'
import type { Terminal } from '../terminal/terminal.ts'

/**
 * Writes an answer's bytes to stdout as they come, at constant memory. Throws `api_unreachable` where the answer ends
 * before it is whole: what was written by then is not complete.
 */
export async function writeBody(
  answer: Response,
  terminal: Terminal,
  progress?: (bytes: number) => void,
): Promise<void> {
  if (!answer.body) return
  let bytes = 0
  const chunks = answer.body.getReader()
  for (;;) {
    const { done, value } = await chunks.read().catch((error: unknown) => {
      const message = `The answer broke off after ${bytes} bytes: what was written is not complete`
      throw new Failure('api_unreachable', { message, cause: error })
    })
    if (done) return
    bytes += value.byteLength
    await terminal.write(value)
    progress?.(bytes)
  }
}

/** The lines of an answer, as they come. */
export async function* linesOf(answer: Response): AsyncGenerator<string> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of answer.body ?? []) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}
