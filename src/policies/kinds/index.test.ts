import { expect, test } from 'bun:test'
import { policyKinds } from './index.ts'

const isKind = (value: unknown): value is { kind: string } =>
  typeof value === 'object' && value !== null && 'kind' in value && 'compile' in value

test('the index lists every policy kind of this folder', async () => {
  const listed: ReadonlySet<unknown> = new Set(policyKinds.values())
  for (const file of new Bun.Glob('*.ts').scanSync(import.meta.dir)) {
    if (file.endsWith('.test.ts')) continue
    const unlisted = Object.values(await import(`./${file}`))
      .filter(isKind)
      .filter((kind) => !listed.has(kind))
    expect(unlisted.map(({ kind }) => `${kind} of ${file}`)).toEqual([])
  }
})
