/** Calls that no client could answer end the answer, in every caller's language alike. */
import { expect, test } from 'bun:test'
import type { LanguageName } from '../neutral.ts'
import { languages } from './languages.ts'
import { translated, UnreadableAnswer } from './translate-response.ts'

const gemini = (functionCall: unknown) => ({
  candidates: [{ content: { parts: [{ functionCall }] }, finishReason: 'STOP' }],
})
const converse = (toolUse: unknown) => ({ output: { message: { content: [{ toolUse }] } }, stopReason: 'tool_use' })
const messages = (call: object) => ({ content: [{ type: 'tool_use', id: 't', ...call }], stop_reason: 'tool_use' })
const chat = (called: unknown) => ({
  choices: [{ index: 0, message: { tool_calls: [{ id: 't', function: called }] }, finish_reason: 'tool_calls' }],
})
const chatFrame = (called: unknown) => ({
  choices: [
    { index: 0, delta: { tool_calls: [{ index: 0, id: 't', function: called }] }, finish_reason: 'tool_calls' },
  ],
})

const calls: readonly [string, LanguageName, whole: unknown, frame: unknown][] = [
  ['has no name', 'gemini', gemini({ args: {} }), gemini({ args: {} })],
  ['has no name', 'chat', chat({ arguments: '{}' }), chatFrame({ arguments: '{}' })],
  ['has no name', 'converse', converse({ toolUseId: 't', input: {} }), null],
  [
    'has no name',
    'messages',
    messages({ input: {} }),
    { type: 'content_block_start', index: 0, content_block: { type: 'tool_use' } },
  ],
  ['has a text for arguments', 'gemini', gemini({ name: 'f', args: '{}' }), gemini({ name: 'f', args: '{}' })],
  ['has a text for arguments', 'converse', converse({ toolUseId: 't', name: 'f', input: '{}' }), null],
  [
    ...(['has a text for arguments', 'messages', messages({ name: 'f', input: '{}' })] as const),
    { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', name: 'f', input: '{}' } },
  ],
  [
    ...(['has a part of its arguments', 'gemini', gemini({ name: 'f', partialArgs: [] })] as const),
    gemini({ name: 'f', partialArgs: [{ jsonPath: '$.a', stringValue: 'b' }], willContinue: true }),
  ],
]

async function answered(from: LanguageName, to: LanguageName, type: string, body: string): Promise<unknown> {
  const { caller } = languages[to]
  if (caller === undefined || caller === null) throw new Error(`Nobody speaks ${to}`)
  const asked = { model: 'm', exchangeId: '01890a5d-ac96-774b-bcce-b302099a8057', includeUsage: true }
  const translation = { from: languages[from].provider, to: caller, asked, limit: 1e6, heard: () => {} }
  try {
    return await (await translated(new Response(body, { headers: { 'content-type': type } }), translation)).text()
  } catch (thrown) {
    return thrown
  }
}

for (const [wrong, from, whole, frame] of calls) {
  test(`a call of ${from} that ${wrong} is no answer, whole or streamed`, async () => {
    for (const to of ['chat', 'responses', 'messages'] as const) {
      const said = await answered(from, to, 'application/json', JSON.stringify(whole))
      expect(said).toBeInstanceOf(UnreadableAnswer)
      if (frame === null) continue
      const streamed = await answered(from, to, 'text/event-stream', `data: ${JSON.stringify(frame)}\n\n`)
      expect(streamed).toBeInstanceOf(UnreadableAnswer)
    }
  })
}
