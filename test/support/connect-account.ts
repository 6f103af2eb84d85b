/** Connects a person's account at an MCP server as a browser does: the console's button, the pages there, the callback. */
import { z } from 'zod'
import { fromConsentPage, type Person } from '../conformance/people.ts'
import { expectAnswer, type Installed, parseOrKeep } from './client.ts'

const begun = z.object({ redirect_to: z.string() })
const mostSteps = 20

/** The browser at the authorization server, from the address that the console was given to the callback's own. */
export async function authorizeThere(address: string, home: string, name: string): Promise<URL> {
  const jar = new Map<string, string>()
  const { origin } = new URL(address)
  let next: { url: string; form?: URLSearchParams } = { url: address }
  for (let step = 0; step < mostSteps; step += 1) {
    const answer = await fetch(next.url, {
      redirect: 'manual',
      headers: { cookie: [...jar].map(([key, value]) => `${key}=${value}`).join('; ') },
      ...(next.form && { method: 'POST', body: next.form }),
    })
    const text = await answer.text()
    for (const cookie of answer.headers.getSetCookie()) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === '') jar.delete(key)
      else jar.set(key, value)
    }
    const location = answer.headers.get('location')
    if (location !== null) {
      const url = new URL(location, next.url)
      if (url.href.startsWith(home)) return url
      next = { url: url.href }
    } else {
      const [, action] = /action="([^"]+)"/.exec(text) ?? []
      if (action === undefined) throw new Error(`The authorization server answered ${answer.status}: ${text}`)
      next = { url: origin + action, form: new URLSearchParams({ login: name }) }
    }
  }
  throw new Error('The authorization server sends the browser in circles')
}

/** Presses the button: where the browser goes, and the cookie of the attempt. */
export async function beginConnection(gatehouse: Installed, who: Person, serverId: string, asked: object = {}) {
  const answer = await fetch(`${gatehouse.baseUrl}/v1/connections/${serverId}/begin`, {
    method: 'POST',
    headers: fromConsentPage(gatehouse, who),
    body: JSON.stringify(asked),
  })
  const body = parseOrKeep(await answer.text())
  const { redirect_to } = expectAnswer({ status: answer.status, headers: answer.headers, body }, 200, begun)
  return { address: redirect_to, cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' }
}

/** Comes back with an answer: the page of the console where the browser ends. */
export async function comeBack(callback: URL, cookies: readonly string[]): Promise<URL> {
  const answer = await fetch(callback, { redirect: 'manual', headers: { cookie: cookies.join('; ') } })
  const location = answer.headers.get('location')
  if (location === null) throw new Error(`The callback answered ${answer.status}: ${await answer.text()}`)
  return new URL(location)
}

/** All of it; `name` is who signs in there. */
export async function connectAccount(gatehouse: Installed, who: Person, serverId: string, name: string): Promise<URL> {
  const { address, cookie } = await beginConnection(gatehouse, who, serverId)
  return await comeBack(await authorizeThere(address, gatehouse.baseUrl, name), [who.cookie, cookie])
}
