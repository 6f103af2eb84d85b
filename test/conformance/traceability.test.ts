import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { pageChecks, redirectChecks } from '../../src/oauth/authorize/authorize.ts'
import { deviceChecks } from '../../src/oauth/device/device-authorization.ts'
import { pollChecks } from '../../src/oauth/device/device-poll.ts'
import { revocationChecks } from '../../src/oauth/tokens/revoke.ts'
import { codeChecks, refreshChecks, requestChecks } from '../../src/oauth/tokens/token-request.ts'
import { repository } from '../support/executable.ts'
import { traceability } from './traceability.ts'

const tables = {
  page: pageChecks,
  authorize: redirectChecks,
  token: requestChecks,
  code: codeChecks,
  refresh: refreshChecks,
  revoke: revocationChecks,
  device: deviceChecks,
  poll: pollChecks,
}

test('every check of the tables is traced to its source and a test', () => {
  const checks = Object.entries(tables).flatMap(([table, rows]) =>
    rows.map(({ name, source }) => `${table}: ${name} | ${source}`),
  )
  const traced = new Set(traceability.map(({ rule, source }) => `${rule} | ${source}`))
  expect(checks.filter((check) => !traced.has(check))).toEqual([])
  const inTables = traceability.filter(({ rule }) =>
    /^(page|authorize|token|code|refresh|revoke|device|poll): /.test(rule),
  )
  expect(inTables).toHaveLength(checks.length)
})

test('every traced test exists', async () => {
  const missing: string[] = []
  for (const { rule, file, test: name } of traceability) {
    const text = await Bun.file(join(repository, file)).text()
    const there = [`'`, `"`].some((quote) => text.includes(`test(${quote}${name}${quote}`))
    if (!there) missing.push(`${rule}: ${file}: ${name}`)
  }
  expect(missing).toEqual([])
})

test('no rule is listed twice', () => {
  expect(new Set(traceability.map(({ rule }) => rule)).size).toBe(traceability.length)
})
