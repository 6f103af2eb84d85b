import { expect, test } from 'bun:test'
import { languages } from './languages.ts'

const marker = (ttl: unknown) => ({ type: 'ephemeral', ttl })

test('a cache marker with a lifetime that no provider has is refused by its field in every language', () => {
  const text = (ttl: unknown) => [{ type: 'text', text: 'Hi', cache_control: marker(ttl) }]
  for (const name of ['chat', 'messages'] as const) {
    const read = (ttl: unknown) =>
      languages[name].caller?.readRequest({ model: 'm', messages: [{ role: 'user', content: text(ttl) }] })
    expect(read('1h')?.turns[0]?.parts[0]?.cache?.value).toEqual({ ttl: '1h' })
    expect(() => read('2h')).toThrow(
      expect.objectContaining({ code: 'translation_unsupported', param: 'messages.0.content.0.cache_control' }),
    )
  }
})

test('a marker for the whole body marks the last part, but for one that is marked itself', () => {
  const content = (...blocks: object[]) => ({ model: 'm', messages: [{ role: 'user', content: blocks }] })
  const [plain, marked] = [
    { type: 'text', text: 'Hi' },
    { type: 'text', text: 'Hi', cache_control: marker('1h') },
  ]
  for (const name of ['chat', 'messages'] as const) {
    const cacheOf = (...blocks: object[]) =>
      languages[name].caller
        ?.readRequest({ ...content(...blocks), cache_control: marker('5m') })
        .turns[0]?.parts.map(({ cache }) => cache?.value.ttl ?? null)
    expect(cacheOf(plain, plain)).toEqual([null, '5m'])
    expect(cacheOf(plain, marked)).toEqual([null, '1h'])
  }
})
