/**
 * What each pair of languages makes of each feature, as files to be read side by side: one input in one language, one
 * output for each other language that it can be put into. `UPDATE_GOLDEN=1 bun test test/golden` writes the outputs
 * again.
 *
 *     request/FEATURE/CALLER.json     → CALLER.to-PROVIDER.json    `{"refused": …}` where the provider cannot be told
 *     answer/FEATURE/PROVIDER.json    → PROVIDER.to-CALLER.json
 *     stream/FEATURE/PROVIDER.sse     → PROVIDER.to-CALLER.sse     an AWS event stream as the frames it becomes
 *     error/FEATURE/PROVIDER.json     → PROVIDER.to-CALLER.json    with its status
 */
import { afterAll, beforeAll, expect, setSystemTime, test } from 'bun:test'
import { join } from 'node:path'
import { Failure } from '../../src/failure.ts'
import { gemini } from '../../src/languages/gemini/dialect.ts'
import type { LanguageName } from '../../src/languages/neutral.ts'
import { isObject, type JsonObject } from '../../src/languages/reading/json-value.ts'
import { languages } from '../../src/languages/translation/languages.ts'
import { translated } from '../../src/languages/translation/translate-response.ts'
import type { Language } from '../../src/languages/translation-language.ts'
import { cut, splitPlans } from '../fakes/splits.ts'
import { expectGolden, pretty } from './golden-file.ts'

const folder = import.meta.dir

/** As the provider names them: what a language makes of a request depends on the model here and there. */
const models: Readonly<Record<LanguageName, string>> = {
  chat: 'gpt-5',
  responses: 'gpt-5',
  messages: 'claude-sonnet-4-6',
  gemini: 'gemini-3-pro',
  converse: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
}
const asked = { model: 'asked-for', exchangeId: '0190a0c0-0000-7000-8000-000000000001', includeUsage: true }

// Responses say when they completed.
beforeAll(() => void setSystemTime(new Date('2024-07-11T10:30:56Z')))
afterAll(() => void setSystemTime())

const names: readonly LanguageName[] = ['chat', 'responses', 'messages', 'gemini', 'converse']
const spoken = names.flatMap((name) => {
  const language = languages[name]
  return language === undefined ? [] : [{ name, language }]
})

interface Input {
  kind: string
  feature: string
  name: string
  language: Language
  text: string
}

/** An input's file says its language: `chat.json`; outputs have `.to-`. */
const inputs: readonly Input[] = await Promise.all(
  [...new Bun.Glob('*/*/*.{json,sse}').scanSync({ cwd: folder })]
    .filter((path) => !path.includes('.to-'))
    .toSorted()
    .flatMap((path) => {
      const [kind = '', feature = '', file = ''] = path.split('/')
      const name = file.slice(0, file.indexOf('.'))
      const found = spoken.find((known) => known.name === name)
      return found === undefined ? [] : [{ kind, feature, name, language: found.language, path }]
    })
    .map(async ({ path, ...input }) => ({ ...input, text: await Bun.file(join(folder, path)).text() })),
)

const of = (kind: string): readonly Input[] => inputs.filter((input) => input.kind === kind)
const others = (name: string) => spoken.filter((other) => other.name !== name)

const matches = (input: Input, to: string, extension: string, made: string): Promise<void> =>
  expectGolden(`${input.kind}/${input.feature}/${input.name}.to-${to}.${extension}`, made)

function objectOf(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  if (!isObject(value)) throw new TypeError('A golden input is an object')
  return value
}

/** A request as the gateway reads it: that of Gemini has its model in the address. */
const gatewayForm = ({ name, text }: Input): string =>
  name === 'gemini'
    ? (gemini.gatewayForm?.(text, 'http://localhost/v1beta/models/asked-for:generateContent') ?? '')
    : text

function written(input: Input, to: LanguageName, target: Language): JsonObject {
  try {
    const request = input.language.caller?.readRequest(objectOf(gatewayForm(input)))
    if (request === undefined) throw new TypeError(`No application speaks ${input.name}`)
    return target.provider.writeRequest({ ...request, model: models[to] })
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown
    const { code, param, message } = thrown
    return { refused: { code, param, message } }
  }
}

test('requests', async () => {
  for (const input of of('request')) {
    for (const { name, language } of others(input.name)) {
      await matches(input, name, 'json', pretty(written(input, name, language)))
    }
  }
})

async function answered(input: Input, target: Language, response: Response): Promise<string> {
  const { caller } = target
  if (caller === null) throw new TypeError('No application speaks it')
  const { provider } = input.language
  const answer = await translated(response, { from: provider, to: caller, asked, limit: 1_000_000, heard() {} })
  return await answer.text()
}

const callersBeside = (name: string) => others(name).filter(({ language }) => language.caller !== null)
const json = { 'content-type': 'application/json' }

test('answers', async () => {
  for (const input of of('answer')) {
    for (const { name, language } of callersBeside(input.name)) {
      const made = await answered(input, language, new Response(input.text, { headers: json }))
      await matches(input, name, 'json', pretty(JSON.parse(made)))
    }
  }
})

test('errors', async () => {
  for (const input of of('error')) {
    const { status, body } = objectOf(input.text)
    for (const { name, language } of callersBeside(input.name)) {
      const response = new Response(JSON.stringify(body), { status: Number(status), headers: json })
      await matches(
        input,
        name,
        'json',
        pretty({ status, body: JSON.parse(await answered(input, language, response)) }),
      )
    }
  }
})

/** A stream that comes in these pieces. */
function streamOf(pieces: readonly Uint8Array[]): Response {
  const waiting = [...pieces]
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = waiting.shift()
      if (piece === undefined) controller.close()
      else controller.enqueue(piece)
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

test('streams at every split of their bytes', async () => {
  for (const input of of('stream')) {
    const bytes = Buffer.from(input.text)
    for (const { name, language } of callersBeside(input.name)) {
      const whole = await answered(input, language, streamOf([bytes]))
      await matches(input, name, 'sse', whole)
      for (const plan of Object.values(splitPlans)) {
        expect(await answered(input, language, streamOf(cut(bytes, plan(bytes))))).toBe(whole)
      }
    }
  }
})

test('every language has its golden file of every feature', () => {
  const callers = spoken.filter(({ language }) => language.caller !== null)
  for (const [kind, wanted] of [
    ['request', callers],
    ['answer', spoken],
    ['stream', spoken],
    ['error', spoken],
  ] as const) {
    const features = new Set(
      [...new Bun.Glob(`${kind}/*/*`).scanSync({ cwd: folder })].map((path) => path.split('/')[1]),
    )
    expect(features.size).toBeGreaterThan(0)
    for (const feature of features) {
      const present = of(kind).flatMap((input) => (input.feature === feature ? [input.name] : []))
      expect([kind, feature, present.toSorted()]).toEqual([kind, feature, wanted.map(({ name }) => name).toSorted()])
    }
  }
})
