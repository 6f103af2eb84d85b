import { expect, test } from 'bun:test'
import { providerKinds } from './index.ts'

const isKind = (value: unknown): boolean => typeof value === 'object' && value !== null && 'send' in value

test('the index lists the provider kind of each file in this folder', async () => {
  const listed: unknown[] = [...providerKinds.values()]
  for (const file of new Bun.Glob('*.ts').scanSync(import.meta.dir)) {
    if (file === 'index.ts' || file.endsWith('.test.ts')) continue
    const kinds = Object.values(await import(`./${file}`)).filter(isKind)
    expect([file, kinds.length]).toEqual([file, 1])
    expect(listed).toContain(kinds[0])
  }
})

test('the handbook describes every provider kind', async () => {
  const page = await Bun.file(new URL('../../handbook/providers-and-models.md', import.meta.url)).text()
  for (const kind of providerKinds.keys()) expect(page).toContain(`| \`${kind}\` |`)
})
