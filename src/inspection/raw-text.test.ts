/** Data of a stream that is no JSON: words that keep the line open, and providers that stream their text plain. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chat } from '../languages/chat/dialect.ts'
import { messages } from '../languages/messages/dialect.ts'
import { responses } from '../languages/responses/dialect.ts'
import { framesOf } from '../languages/testing/streams.ts'
import { personalDataDetector } from './detectors/personal-data/personal-data.ts'
import { secretDetector } from './detectors/secrets/secret-patterns.ts'
import { patternDetector } from './regex/pattern-detector.ts'
import { data, delta, done, forbids, pass, passes } from './testing/inspecting.ts'
import { cutAt, feedPieces, ruleOf } from './testing/passing.ts'

const personal = personalDataDetector(['email', 'phone', 'card'])
const actions = ['redact', 'block'] as const
/** The data that is no JSON of a stream's frames, but for its end. */
const rawIn = (stream: string) =>
  framesOf(Buffer.from(stream)).flatMap((frame) => (/^$|^\{|^\[DONE/.test(frame.data ?? '') ? [] : [frame.data ?? '']))

test('passes keep-alive words at once, unchanged and in order, under any policy', () => {
  const ping = 'event: ping\ndata: keepalive\n\n'
  const frames = [data('ping'), delta({ content: 'I am' }), data('ping'), ping, data('[PING]'), data('heartbeat')]
  for (const detector of [personal, secretDetector()]) {
    for (const action of actions) {
      for (const dialect of [chat, messages, responses]) {
        const words = frames.filter((frame) => !frame.includes('{'))
        expect(passes(dialect, words.join(''), ruleOf(detector, action))).toEqual(words)
      }
      const passed = passes(chat, frames.join(''), ruleOf(detector, action))
      expect(passed.map((text, index) => (index === 1 ? frames[1] : text))).toEqual(frames)
    }
  }
})

test('inspects a keep-alive word alone and joined with those before it', () => {
  const rule = ruleOf(patternDetector([{ label: 'W', pattern: 'pingpong|heartbeat' }], both), 'block')
  expect(pass(chat, data('heartbeat') + done, rule)).toMatchObject({ text: '', stop: { verdict: 'block' } })
  expect(pass(chat, data('ping') + data('pong') + done, rule)).toMatchObject({
    text: data('ping'),
    stop: { verdict: 'block' },
  })
  expect(pass(chat, data('ping') + data('@ex.org') + done, ruleOf(personal, 'redact')).text).toBe(
    data('ping') + data('[EMAIL]') + done,
  )
})
const both = { streaming: true, paramOf: String } as const

test('holds data that may become a match and everything after it, in order', () => {
  const rule = ruleOf(personal, 'redact')
  expect(passes(chat, data('so far') + data(': ok') + data('\\') + data('[DONE]'), rule)).toEqual([
    '',
    data('so far'),
    data(': ok') + data('\\'),
    data('[DONE]'),
  ])
  const frames = [data('at work'), ': comment\n\n', delta({ content: 'Hi, ' }), data('2 of 3'), data('[DONE]')]
  expect(passes(chat, frames.join(''), rule)).toEqual([
    '',
    ':\n\n',
    data('at work') + frames[2],
    '',
    data('2 of 3') + data('[DONE]'),
  ])
})

test('sends no part of a word over two frames, and nothing after it', () => {
  for (let cut = 1; cut < 'blackbird'.length; cut++) {
    const [one, two] = [data(`a ${'blackbird'.slice(0, cut)}`), data(`${'blackbird'.slice(cut)}, yes`)]
    expect(pass(chat, one + two + done).text).toBe(data('a '))
    expect(pass(chat, one + two + done, forbids('redact')).text).toBe(data('a [TERM], yes') + data('') + done)
    const between = delta({ content: 'x' })
    const stopped = pass(chat, one + between + two + done)
    expect(stopped).toMatchObject({ text: one + between, stop: { verdict: 'block' } })
    expect(pass(chat, one + between + two + done, forbids('redact')).text).toBe(one + between + data('[TERM]') + done)
  }
})

const said = fc.constantFrom('ann@ex.org', '+1-984-182-0190', 'ping', ' and ', ', ', 'x', '.', ' 12', 'é')
const texts = fc.array(said, { minLength: 1, maxLength: 8 }).map((words) => words.join(''))
const places = fc.array(fc.nat({ max: 60 }), { maxLength: 8 })
const cutText = fc.tuple(texts, places).map(([text, cuts]) => cutAt(text, cuts).filter((piece) => piece !== ''))
const framesBetween = (...frames: string[]) => fc.array(fc.constantFrom('', ...frames), { minLength: 1, maxLength: 4 })
const streamOf = (pieces: readonly string[], between: readonly string[]) =>
  pieces.map((piece, at) => data(piece) + between[at % between.length]).join('')

test('reads plain text the same at every split and passes it unchanged without a match', () => {
  fc.assert(
    fc.property(
      cutText,
      framesBetween(':\n\n', 'data:\n\n'),
      fc.constantFrom(...actions),
      (pieces, between, action) => {
        fc.pre(!pieces.includes('ping'))
        const rule = ruleOf(personal, action)
        const stream = streamOf(pieces, between) + data('[DONE]')
        const { text, stop } = pass(chat, stream, rule)
        const whole = feedPieces([rule], [pieces.join('')])
        expect(rawIn(text).join('')).toBe(whole.text)
        expect(stop?.verdict).toBe(whole.stop?.verdict)
        // Comments may leave before data that waits.
        if (whole.findings.length === 0) expect(text.replaceAll(':\n\n', '')).toBe(stream.replaceAll(':\n\n', ''))
      },
    ),
    { numRuns: 600 },
  )
})

test('finds a match in plain text interleaved with keep-alive words and frames', () => {
  const between = framesBetween(delta({ content: 'ok ' }), ': k\n\n', data('ping'))
  const values = fc.constantFrom('', 'ann@ex.org', '+1-984-182-0190')
  const [start, end] = [fc.constantFrom('', 'I am '), fc.constantFrom('', ', yes', ' é')]
  fc.assert(
    fc.property(start, values, end, places, between, (before, value, after, cuts, frames) => {
      const pieces = cutAt(before + value + after, cuts).filter((piece) => piece !== '')
      const stream = streamOf(pieces, frames) + done
      for (const action of actions) {
        const { text, stop } = pass(chat, stream, ruleOf(personal, action))
        if (value === '') {
          expect(stop).toBeNull()
          expect(text.replaceAll(':\n\n', '')).toBe(stream.replaceAll(': k\n\n', ''))
        } else {
          const left = rawIn(text)
          expect(left.join('')).not.toContain(value)
          expect(left.filter((each) => each !== 'ping').join('')).not.toContain(value)
        }
      }
    }),
    { numRuns: 400 },
  )
})

const asEvent = (name: string, text: string) => `event: ${name}\n${data(text)}`

test('inspects one event as one text, even with other events between', () => {
  const names = fc.constantFrom('token', 'heartbeat', 'other')
  const others = fc.array(fc.tuple(names, fc.constantFrom('beat', 'x', 'é')), { maxLength: 4 })
  const word = fc.constantFrom('', 'ann@ex.org', '+1-984-182-0190')
  const cuts = fc.array(fc.nat({ max: 14 }), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(others, word, cuts, fc.array(others, { minLength: 5, maxLength: 5 }), (first, value, at, between) => {
      const written = (frames: (readonly [string, string])[]) => frames.map((frame) => asEvent(...frame)).join('')
      const pieces = cutAt(value, at).filter((piece) => piece !== '')
      const split = pieces.map((piece, index) => asEvent('mine', piece) + written(between[index] ?? [])).join('')
      const stream = written(first) + split + done
      for (const action of actions) {
        const { text, stop } = pass(chat, stream, ruleOf(personal, action))
        if (value === '') expect({ text, stop }).toEqual({ text: stream, stop: null })
        const mine = [...text.matchAll(/event: mine\ndata: ?(.*)/g)].map(([, said]) => said)
        if (value !== '') expect(mine.join('')).not.toContain(value)
      }
    }),
    { numRuns: 400 },
  )
})

test('also inspects lines of data joined without separators, as some clients print them', () => {
  for (let cut = 1; cut < 'blackbird'.length; cut++) {
    const [one, two] = ['blackbird'.slice(0, cut), 'blackbird'.slice(cut)]
    for (const stream of [
      `data: a ${one}\ndata: ${two} so\n\n`,
      `${data('a swan')}data: a\ndata: ${one}\n\n${data(two)}`,
      `data: blackbird\ndata: ${one}\ndata: ${two}\n\n`,
    ]) {
      for (const action of actions) {
        const { text } = pass(chat, stream + done, forbids(action))
        expect(text.replaceAll(/\n*data: ?/g, '')).not.toContain('blackbird')
      }
      expect(pass(chat, stream + done).stop?.verdict).toBe('block')
    }
  }
  const honest = `data: a black\ndata: swan\n\n${data('"a black\\n"')}${data('"bird"')}${done}`
  expect(pass(chat, honest)).toEqual({ text: honest, stop: null })
})
