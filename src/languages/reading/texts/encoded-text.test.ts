import { expect, test } from 'bun:test'
import { chat } from '../../chat/dialect.ts'
import type { Dialect } from '../../dialect.ts'
import { messages } from '../../messages/dialect.ts'
import { responses } from '../../responses/dialect.ts'
import type { JsonObject } from '../json-value.ts'
import { base64OfText, textOfBase64 } from './encoded-text.ts'

const said = 'hello leak@example.com'
const base64 = base64OfText(said)
const url = (mediaType: string, bytes = base64) => `data:${mediaType};base64,${bytes}`

const inChat = (file: JsonObject): JsonObject => ({ messages: [{ role: 'user', content: [{ type: 'file', file }] }] })
const inResponses = (file: JsonObject): JsonObject => ({
  input: [{ role: 'user', content: [{ type: 'input_file', ...file }] }],
})
const inMessages = (mediaType: string, data = base64): JsonObject => ({
  messages: [
    {
      role: 'user',
      content: [{ type: 'document', source: { type: 'base64', media_type: mediaType, data } }],
    },
  ],
})

const textsOf = (dialect: Dialect, body: JsonObject) => dialect.requestText(body).map(({ text }) => text)

test("policies read a request's base64 text file, and its replacement is encoded again", () => {
  for (const [dialect, body] of [
    [chat, inChat({ filename: 'a.txt', file_data: url('text/plain') })],
    [
      chat,
      inChat({ file_data: url('TEXT/CSV; charset=utf-8').replace('data:', 'DATA:').replace(';base64', ';BASE64') }),
    ],
    [chat, inChat({ filename: 'a.txt', file_data: base64 })],
    [responses, inResponses({ filename: 'a.json', file_data: url('application/json') })],
    [responses, inResponses({ file_url: url('application/octet-stream') })],
    [
      responses,
      { input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_data: url('') }] }] },
    ],
    [messages, inMessages('text/plain')],
    [messages, inMessages('application/xhtml+xml')],
  ] as const) {
    const before = JSON.stringify(body)
    const slots = dialect.requestText(body).filter(({ text }) => text === said)
    expect([before, slots.length]).toEqual([before, 1])
    const [slot] = slots
    slot?.replace(said)
    expect(JSON.stringify(body)).toBe(before)
    slot?.replace('hello [EMAIL_1]')
    expect(JSON.stringify(body)).toBe(before.replace(base64, base64OfText('hello [EMAIL_1]')))
  }
})

test('files that are no text are not read', () => {
  const bytes = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0x00]).toString('base64')
  for (const [dialect, body] of [
    [chat, inChat({ filename: 'a.pdf', file_data: url('application/pdf') })],
    [chat, inChat({ filename: 'a.pdf', file_data: base64 })],
    [chat, inChat({ filename: 'a.bin', file_data: bytes })],
    [responses, inResponses({ file_data: url('application/octet-stream', bytes) })],
    [messages, inMessages('image/png')],
  ] as const) {
    expect(textsOf(dialect, body).map((text) => text.replace(/^a\.\w+$/, ''))).not.toContainEqual(
      expect.stringMatching(/./),
    )
  }
})

test('replaces both the address of a file and its text', () => {
  const body = inChat({ file_data: `data:text/plain;name=leak@example.com;base64,${base64}` })
  for (const slot of chat.requestText(body)) slot.replace(slot.text.replace('leak@example.com', 'x'))
  const [whole = ''] = /data:[^"]+/.exec(JSON.stringify(body)) ?? []
  expect(whole).toStartWith('data:text/plain;name=x;base64,')
  expect(textOfBase64(whole.slice(whole.indexOf(',') + 1))).toBe('hello x')
})
