import { expect, test } from 'bun:test'
import { presetSchema } from './preset-record.ts'
import { presetRecord } from './preset-routes.ts'
import { presetNamed, presets } from './presets.ts'

const named = (name: string) => {
  const preset = presetNamed(name)
  if (preset === undefined) throw new Error(`There is no preset ${name}`)
  return presetRecord(preset)
}

test('gives each preset in the form that the API describes', () => {
  for (const preset of presets) expect(presetSchema.strict().parse(presetRecord(preset)).name).toBe(preset.name)
})

test('says what a service needs: a key, an address, or nothing', () => {
  expect(named('groq')).toMatchObject({
    address: 'https://api.groq.com/openai/v1',
    address_needed: null,
    key_variable: 'GROQ_API_KEY',
    key_needed: true,
  })
  expect(named('ollama')).toMatchObject({ address: 'http://127.0.0.1:11434/v1', key_needed: false })
  expect(named('azure')).toMatchObject({ address: null, key_needed: true })
  expect(named('azure').address_needed).toContain('https://NAME.openai.azure.com')
})
