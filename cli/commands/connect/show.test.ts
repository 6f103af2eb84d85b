import { expect, test } from 'bun:test'
import { differenceText } from './show.ts'

test('a change beside a secret of somebody else shows no part of it, on neither side', () => {
  const before = '{\n  "OTHER_TOKEN": "hunter2hunter2"\n}\n'
  const after = '{\n  "OTHER_TOKEN": "hunter2hunter2",\n  "model": "m"\n}\n'
  const shown = differenceText({ path: 'settings.json', before, after })
  expect(shown).not.toContain('hunter2')
  expect(shown).toContain('+  "model": "m"')
})
