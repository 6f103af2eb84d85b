/** A person connects an account at a real authorization server, in a real browser. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type ProtectedMcpServer, startProtectedMcpServer } from '../fakes/protected-mcp-server.ts'
import { freePort } from '../support/free-port.ts'
import { endConsole, make, openConsole, seriousInBothThemes } from './console.ts'

setDefaultTimeout(120_000)

let tracker: ProtectedMcpServer

beforeAll(async () => {
  tracker = await startProtectedMcpServer(await freePort())
  await make('/v1/catalog/mcp-servers', { name: 'tracker', url: tracker.url, personal: true })
  await make('/v1/catalog/mcp-servers', { name: 'absent', url: `http://127.0.0.1:${await freePort()}`, personal: true })
}, 240_000)
afterAll(async () => {
  await tracker?.[Symbol.asyncDispose]()
  await endConsole()
})

test('a link of an agent shows the server first; the person connects it, and disconnects it', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/connections?server=tracker')
  await page.getByText('A program that works for you wants to use your account').waitFor()
  expect(await seriousInBothThemes(page, 'connections-asked')).toEqual([])
  await page.getByRole('button', { name: 'Connect tracker' }).click()
  await page.getByLabel('Your name').fill('olga-there')
  await page.getByRole('button', { name: 'Sign in here' }).click()
  await page.getByText('Connected', { exact: true }).first().waitFor()
  expect(page.url()).toEndWith('/console/connections?server=tracker')
  expect(await seriousInBothThemes(page, 'connections')).toEqual([])
  await opened.to('/connections?server=tracker&scope=issues%3Awrite')
  await page.getByText('It also asks for issues:write').waitFor()
  await page.getByRole('button', { name: 'Connect again tracker' }).waitFor()
  await opened.to('/connections?server=tracker')
  await page.getByRole('button', { name: 'Disconnect' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click()
  await page.getByText('Your account is disconnected').waitFor()
  await page.getByText('A program that works for you wants to use your account').waitFor()
})

test('a server that does not answer is said to, and nothing is left in the address', async () => {
  await using opened = await openConsole()
  const { page } = opened
  await opened.to('/connections')
  await page.getByRole('button', { name: 'Connect absent' }).click()
  await page.getByText('The MCP server absent cannot be connected now').waitFor()
  await opened.to('/connections?server=absent&refused=provider_denied')
  await page.getByText('the other side did not agree').waitFor()
  expect(page.url()).toEndWith('/console/connections?server=absent')
})
