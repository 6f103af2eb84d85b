/** The master key of two control planes on one primary is rotated, while one of them always answers. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { api } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type ControlPlane, startControlPlane, startPrimary } from './control-plane.ts'

setDefaultTimeout(240_000)

const primary = await startPrimary()
const planes = new Set<ControlPlane>()
afterAll(async () => {
  for (const plane of planes) await plane[Symbol.asyncDispose]()
  await primary[Symbol.asyncDispose]()
})

let adminToken = ''

async function start(environment: Readonly<Record<string, string>> = {}): Promise<ControlPlane> {
  const plane = await startControlPlane(primary, environment)
  planes.add(plane)
  adminToken ||= plane.adminToken
  return plane
}
async function replace(former: ControlPlane, environment: Readonly<Record<string, string>>): Promise<ControlPlane> {
  const next = await start(environment)
  planes.delete(former)
  await former[Symbol.asyncDispose]()
  return next
}
const rotate = async ({ baseUrl }: ControlPlane) =>
  await api({ baseUrl, adminToken }, '/v1/master-key/rotate', { body: {} })
const state = async ({ baseUrl }: ControlPlane) => (await api({ baseUrl, adminToken }, '/v1/master-key')).body

test('two control planes are given the next key, rotate, and then run with it alone', async () => {
  const SERVICE_MASTER_KEY_NEXT = randomBytes(32).toString('base64')
  let [one, other] = [await start(), await start()]
  const refused = await rotate(one)
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([
    409,
    expect.stringContaining('SERVICE_MASTER_KEY_NEXT'),
  ])

  one = await replace(one, { SERVICE_MASTER_KEY_NEXT })
  // The other one has no next key yet.
  const early = await rotate(one)
  expect([early.status, JSON.stringify(early.body)]).toEqual([409, expect.stringContaining('Another control plane')])
  other = await replace(other, { SERVICE_MASTER_KEY_NEXT })
  expect(await state(other)).toMatchObject({ source: 'setting', rotation: 'ready' })

  await until('all that run have the next key', async () => (await rotate(one)).status === 200)
  for (const plane of [one, other]) {
    await until(
      'nothing is left under the former key, and nobody has sealed under it for half a minute',
      async () => JSON.stringify(await state(plane)).includes('"complete"'),
      { withinMs: 90_000, everyMs: 500 },
    )
  }
  await expect(start()).rejects.toThrow('does not open the secrets')
  const alone = { SERVICE_MASTER_KEY: SERVICE_MASTER_KEY_NEXT }
  one = await replace(one, alone)
  expect(await state(other)).toMatchObject({ rotation: 'complete' })
  other = await replace(other, alone)
  for (const plane of [one, other])
    expect(await state(plane)).toEqual({ source: 'setting', rotation: 'none', resealed: 0 })
})
