import { expect, test } from 'bun:test'
import { policyKinds } from './index.ts'

const isKind = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'kind' in value && 'compile' in value

test('the index lists every policy kind of this folder', async () => {
  const listed: unknown[] = [...policyKinds.values()]
  for (const file of new Bun.Glob('*.ts').scanSync(import.meta.dir)) {
    if (file.endsWith('.test.ts')) continue
    for (const kind of Object.values(await import(`./${file}`)).filter(isKind)) expect(listed).toContain(kind)
  }
})
