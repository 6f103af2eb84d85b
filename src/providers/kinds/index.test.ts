import { expect, test } from 'bun:test'
import { listedPrices } from '../prices/price-table.ts'
import { providerKinds } from './index.ts'

const isKind = (value: unknown): value is { kind: string } =>
  typeof value === 'object' && value !== null && 'kind' in value && 'send' in value

test('the index lists the provider kind of each file in this folder', async () => {
  const listed: ReadonlySet<unknown> = new Set(providerKinds.values())
  for (const file of new Bun.Glob('*.ts').scanSync(import.meta.dir)) {
    if (file === 'index.ts' || file.endsWith('.test.ts')) continue
    const kinds = Object.values(await import(`./${file}`)).filter(isKind)
    expect([file, kinds.length]).toEqual([file, 1])
    const unlisted = kinds.filter((kind) => !listed.has(kind))
    expect(unlisted.map(({ kind }) => `${kind} of ${file}`)).toEqual([])
  }
})

test('the handbook has a row for every provider kind', async () => {
  const page = await Bun.file(new URL('../../handbook/providers-and-models.md', import.meta.url)).text()
  expect([...providerKinds.keys()].filter((kind) => !page.includes(`| \`${kind}\` |`))).toEqual([])
})

test('the price table has models under the price name of every provider kind', () => {
  const named = [...providerKinds.values()].filter(({ priceName }) => priceName !== null)
  const withoutPrices = named.filter(({ kind }) => listedPrices(kind, null, Date.now()).length === 0)
  expect(withoutPrices.map(({ kind, priceName }) => `${kind}: ${priceName}`)).toEqual([])
})
