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
