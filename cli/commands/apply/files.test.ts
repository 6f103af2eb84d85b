import { expect, test } from 'bun:test'
import { readSources } from './files.ts'

const piped = async (text: string): Promise<unknown> => {
  const [source] = await readSources('-', async () => new TextEncoder().encode(text))
  return source?.content
}

test.each([
  ['TOML', '# providers\n\n[[providers]]\nname = "a"\n'],
  ['TOML with a table inside', 'providers = [{ name = "a" }]\n'],
  ['YAML', '# providers\n---\nproviders:\n  - name: a\n'],
  ['YAML with braces', 'providers: [{ name: "a" }]'],
  ['JSON', '{"providers": [{"name": "a"}]}'],
])('reads %s from standard input', async (_format, text) => {
  expect(await piped(text)).toEqual({ providers: [{ name: 'a' }] })
})

test('names the place of a fault in TOML from standard input', async () => {
  await expect(piped('[[providers]]\nname = a\n')).rejects.toThrow(/^-:2:/)
})

test.each([
  ['lists', `${'['.repeat(5000)}${']'.repeat(5000)}`, '-:1:101'],
  ['objects of JSON', `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`, '-:1:'],
  ['lines', Array.from({ length: 5000 }, (_, level) => `${' '.repeat(level)}a:`).join('\n'), '-:100:101'],
])('refuses %s that are nested 5000 deep, with the place', async (_what, text, place) => {
  await expect(piped(text)).rejects.toThrow(place)
  await expect(piped(text)).rejects.toThrow('It is nested more than 100 levels deep')
})
