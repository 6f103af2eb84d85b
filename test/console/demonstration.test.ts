/** The screens of `gatehouse demo`, which has more of everything than a test makes: what axe finds in their four looks. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { cleanEnvironment, collect } from '../support/harness.ts'
import { allThere, endConsole, openConsole, seriousInEveryLook } from './console.ts'
import { fileName } from './every-screen.ts'

setDefaultTimeout(400_000)

const readyLine = z.object({
  ...{ base_url: z.string(), console_url: z.string(), admin_token: z.string() },
  ...{ email: z.string(), password: z.string() },
})
let demonstration: z.infer<typeof readyLine>
let end = async (): Promise<void> => undefined

beforeAll(async () => {
  const child = Bun.spawn([await executable(), 'demo', '--json', '--requests', '400', '--rate', '20'], {
    env: cleanEnvironment(),
    ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  end = async () => {
    child.kill('SIGINT')
    await child.exited
  }
  demonstration = await eventually(
    () => {
      const line = stdout().split('\n')[0]
      if (!line) throw new Error(`The demonstration is not ready (exit code ${child.exitCode}): ${stderr()}`)
      return readyLine.parse(JSON.parse(line))
    },
    { withinMs: 120_000 },
  )
}, 240_000)
afterAll(() => Promise.all([end(), endConsole()]))

/** The first record of a list, by the member that names it. */
async function firstOf(path: string, list: string, id = 'id'): Promise<string> {
  const installed = { baseUrl: demonstration.base_url, adminToken: demonstration.admin_token }
  const page = z.record(z.string(), z.unknown()).parse(await expectAnswer(await api(installed, path), 200, z.unknown()))
  const [first] = z.array(z.looseObject({})).parse(page[list])
  return z.string().parse(first?.[id])
}

test('axe finds no serious problem on the screens of the demonstration in any of their four looks', async () => {
  const { base_url: baseUrl, console_url, email, password } = demonstration
  await using opened = await openConsole({ gatehouse: { baseUrl, ready: { console_url } }, as: { email, password } })
  const refused = '/v1/events?since=7d&event_type=gateway.request.outcome&verdict=block&limit=1'
  const paths = [
    ...['/', '/traffic?chart=on', '/sessions', '/tokens', '/escalations', '/alerts', '/policies', '/spend', '/reports'],
    ...['/catalog', '/catalog?kind=models', '/catalog?kind=budgets', '/people', '/settings', '/search?q=a'],
    `/traffic/${await firstOf(refused, 'events', 'exchange_id')}`,
    `/tokens/${await firstOf('/v1/tokens?limit=1', 'tokens')}`,
    `/policies/${await firstOf('/v1/policies?limit=1', 'policies')}`,
    `/budgets/${await firstOf('/v1/budgets?limit=1', 'budgets')}`,
  ]
  await opened.to('/')
  const found: string[] = []
  for (const path of paths) {
    await opened.within(path)
    await opened.page.locator('main h1').waitFor()
    await allThere(opened.page)
    found.push(...(await seriousInEveryLook(opened.page, `demonstration-${fileName(path)}`)))
  }
  expect(found).toEqual([])
})
