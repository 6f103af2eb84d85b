import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, expectAnswer } from '../support/client.ts'
import { endConsole, openConsole, owner, picture, seriousFindings, sharedConsole } from './console.ts'

setDefaultTimeout(120_000)

const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
const client_id = 'build-tool'

beforeAll(async () => {
  const { gatehouse } = await sharedConsole()
  const body = {
    ...{ client_id, client_name: 'Build tool', scope: 'gateway:invoke' },
    grant_types: [grant_type, 'refresh_token'],
  }
  expect((await api(gatehouse, '/v1/oauth/clients', { body })).status).toBe(201)
}, 240_000)
afterAll(endConsole)

const codes = z.looseObject({ device_code: z.string(), user_code: z.string(), verification_uri_complete: z.string() })

async function ask() {
  const { gatehouse } = await sharedConsole()
  const answer = await api(gatehouse, '/v1/oauth/device_authorization', { token: null, body: { client_id } })
  return expectAnswer(answer, 200, codes)
}

async function poll(device_code: string) {
  const { gatehouse } = await sharedConsole()
  const { status, body } = await api(gatehouse, '/v1/oauth/token', {
    token: null,
    body: { grant_type, client_id, device_code },
  })
  return { status, ...z.looseObject({ error: z.string().optional() }).parse(body) }
}

test('a person types the code, reads what is asked, approves, and the device has its tokens', async () => {
  const { device_code, user_code } = await ask()
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/device')
  await page.getByLabel('Code').fill('BBBB-BBBB')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('No device waits with this code').first().waitFor()
  await picture(page, 'device-code')
  expect(await seriousFindings(page)).toEqual([])
  await page.getByLabel('Code').fill(user_code.toLowerCase().replace('-', ' '))
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { name: 'Authorize this device?' }).waitFor()
  expect(await page.locator('blockquote').textContent()).toBe('“Build tool”')
  expect(await page.locator('strong.mono').textContent()).toBe(user_code)
  expect(await page.locator('main li').count()).toBe(1)
  expect(await page.getByRole('link').count()).toBe(0)
  expect(await seriousFindings(page)).toEqual([])
  await picture(page, 'device')
  expect(await poll(device_code)).toMatchObject({ status: 400, error: 'authorization_pending' })
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('heading', { name: 'Approved' }).waitFor()
  expect((await poll(device_code)).status).toBe(200)
})

test('a link with the code asks a person to sign in, shows the question, and approves nothing by itself', async () => {
  const { device_code, user_code, verification_uri_complete } = await ask()
  await using opened = await openConsole({ as: null })
  const { page } = opened
  await page.goto(verification_uri_complete)
  await page.getByLabel('E-mail').fill(owner.email)
  await page.getByLabel('Password').fill(owner.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Authorize this device?' }).waitFor()
  expect(await page.locator('strong.mono').textContent()).toBe(user_code)
  expect(await poll(device_code)).toMatchObject({ status: 400, error: 'authorization_pending' })
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByRole('heading', { name: 'Denied' }).waitFor()
  expect(await poll(device_code)).toMatchObject({ status: 400, error: 'access_denied' })
})
