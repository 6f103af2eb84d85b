/**
 * The thread that counts tokens: it loads a vocabulary with the first body that needs it (0.2 s, 100 MB) and answers one
 * message at a time. `token-counter.ts` starts and ends it.
 */
import { z } from 'zod'
import { type CountText, type Encoding, tokensOfBody } from './text-tokens.ts'

declare const self: Worker

const messageSchema = z.object({ encoding: z.enum(['o200k_base', 'cl100k_base']), body: z.instanceof(Uint8Array) })

/** Text that looks like a special token counts as text. */
const asText = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }

async function counterFor(encoding: Encoding): Promise<CountText> {
  const { countTokens } =
    encoding === 'o200k_base'
      ? await import('gpt-tokenizer/encoding/o200k_base')
      : await import('gpt-tokenizer/encoding/cl100k_base')
  return (text) => countTokens(text, asText)
}

self.onmessage = async ({ data }: MessageEvent<unknown>) => {
  try {
    const { encoding, body } = messageSchema.parse(data)
    const countText = await counterFor(encoding)
    self.postMessage({ tokens: tokensOfBody(JSON.parse(new TextDecoder().decode(body)), countText) })
  } catch (thrown) {
    self.postMessage({ error: thrown instanceof Error ? thrown.message : String(thrown) })
  }
}
