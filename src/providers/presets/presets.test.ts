import { expect, test } from 'bun:test'
import { listedModel } from '../prices/price-table.ts'
import { type Preset, presets, unknownPreset } from './presets.ts'

/** Null for an address that depends on the provider's region or resource. */
function addressOf({ kind }: Preset): string | null {
  const provider = { id: 'p', name: 'p', kind: kind.kind, baseUrl: null, apiKey: null, headers: {} }
  return kind.address?.({ ...provider, allowUnlistedModels: true }) ?? null
}

/** A preset as a row of the handbook's table. */
function rowOf(preset: Preset): string {
  const { name, title, kind } = preset
  const code = (text: string | null | undefined) => (text == null ? '–' : `\`${text}\``)
  const families = kind.families.join(', ')
  const variable = code(kind.environment?.apiKey)
  return `| ${code(name)} | ${title} | ${variable} | ${code(addressOf(preset))} | ${families} | ${kind.priceName === null ? 'none' : 'table'} |`
}

test('stands in the handbook as it is in the table', async () => {
  const page = await Bun.file(new URL('../../handbook/providers-and-models.md', import.meta.url)).text()
  expect(presets.map(rowOf).filter((row) => !page.includes(`${row}\n`))).toEqual([])
})

test('gives each preset a name, a kind and a variable of its own', () => {
  for (const values of [
    presets.map(({ name }) => name),
    presets.map(({ kind }) => kind.kind),
    presets.flatMap(({ kind }) => kind.environment?.apiKey ?? []),
    presets.flatMap(({ kind }) => kind.environment?.baseUrl ?? []),
  ]) {
    expect(values).toEqual([...new Set(values)])
  }
})

test('finds prices of each service that the price table knows', () => {
  const models = {
    openai: 'gpt-4o',
    anthropic: 'claude-sonnet-4-5',
    groq: 'llama-3.3-70b-versatile',
    mistral: 'mistral-large-latest',
    deepseek: 'deepseek-chat',
    xai: 'grok-4',
    openrouter: 'anthropic/claude-sonnet-4',
    perplexity: 'sonar',
    fireworks: 'accounts/fireworks/models/deepseek-v3p2',
  }
  for (const [kind, model] of Object.entries(models)) {
    expect([kind, listedModel(kind, null, model, Date.now())?.price.tiers.length]).toEqual([kind, expect.any(Number)])
  }
})

test('suggests the nearest preset for a name that none has', () => {
  expect(unknownPreset('grok')).toContain('Did you mean groq?')
  expect(unknownPreset('hugging-face')).toContain('Did you mean huggingface?')
  expect(unknownPreset('watsonx')).not.toContain('Did you mean')
  expect(unknownPreset('watsonx')).toContain('groq, mistral')
})
