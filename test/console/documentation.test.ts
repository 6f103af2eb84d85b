/** The documentation page in a browser: a foreign script draws it, under a policy that lets no style in but its own. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { endConsole, sharedConsole } from './console.ts'

setDefaultTimeout(60_000)
afterAll(endConsole)

test('the documentation page is drawn with its styles and ignores a style in its data', async () => {
  const { browser, gatehouse } = await sharedConsole()
  await using context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(`${gatehouse.baseUrl}/docs`)
  await page.getByRole('heading', { name: 'Gatehouse', level: 1 }).waitFor()
  const rules = 'Math.max(...[...document.styleSheets].map(({ cssRules }) => cssRules.length))'
  expect(await page.evaluate(rules)).toBeGreaterThan(1000)
  await page.evaluate(`document.body.insertAdjacentHTML('beforeend', '<style>h1 { color: rgb(1, 2, 3) }</style>')`)
  const colour = `getComputedStyle(document.querySelector('h1')).color`
  expect(await page.evaluate(colour)).not.toBe('rgb(1, 2, 3)')
})

test('the handbook can be read and searched in a browser that allows only its style sheet', async () => {
  const { browser, gatehouse } = await sharedConsole()
  await using context = await browser.newContext()
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(message.text()))
  await page.goto(`${gatehouse.baseUrl}/docs/handbook`)
  await page.getByRole('link', { name: 'Operations' }).click()
  await page.getByRole('heading', { name: 'Operations', level: 1 }).waitFor()
  expect(await page.evaluate(`getComputedStyle(document.body).maxWidth`)).toBe('896px')
  await page.getByRole('searchbox').fill('emergency revoke')
  await page.getByRole('searchbox').press('Enter')
  await page.getByRole('link', { name: 'Tokens', exact: true }).click()
  await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor()
  expect(complaints).toEqual([])
})
