/** People in browsers, and applications, for the conformance tests: all of it over HTTP. */
import { z } from 'zod'
import { api, expectAnswer, type Installed, parseOrKeep } from '../support/client.ts'

const signedIn = z.object({ user: z.looseObject({ id: z.uuid() }), csrf_token: z.string() })
const identified = z.looseObject({ id: z.uuid() })
const registered = z.looseObject({ client_id: z.string() })
const decided = z.object({ redirect_to: z.string() })
const previewed = z.looseObject({ scopes: z.array(z.looseObject({ scope: z.string() })).optional() })

export interface Person {
  id: string
  email: string
  cookie: string
  csrf: string
}

const password = 'a long enough secret 1'

/** Adds a person and signs them in to a browser. */
export async function person(gatehouse: Installed, name: string, role = 'member'): Promise<Person> {
  const email = `${name}@example.com`
  const { id } = expectAnswer(
    await api(gatehouse, '/v1/users', { body: { email, name, role, password } }),
    201,
    identified,
  )
  return { id, email, ...(await signIn(gatehouse, email)) }
}

/** A new session of a person in a browser. */
export async function signIn(gatehouse: Installed, email: string): Promise<Pick<Person, 'cookie' | 'csrf'>> {
  const answer = await fetch(`${gatehouse.baseUrl}/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: gatehouse.baseUrl },
    body: JSON.stringify({ email, password }),
  })
  const body = parseOrKeep(await answer.text())
  const { csrf_token } = expectAnswer({ status: answer.status, headers: answer.headers, body }, 200, signedIn)
  return { cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '', csrf: csrf_token }
}

export const redirectUri = 'https://app.example.com/callback'

export async function register(gatehouse: Installed, fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const body = {
    client_name: 'A notebook',
    redirect_uris: [redirectUri],
    scope: 'gateway:invoke tokens:read',
    ...fields,
  }
  return expectAnswer(await api(gatehouse, '/v1/oauth/clients', { body }), 201, registered).client_id
}

/** What the consent page's own requests carry. */
export const fromConsentPage = (gatehouse: Installed, { cookie, csrf }: Person): Record<string, string> => ({
  'content-type': 'application/json',
  cookie,
  origin: gatehouse.baseUrl,
  'sec-fetch-site': 'same-origin',
  'x-csrf-token': csrf,
})

/** The query of an address as the consent page passes it on. */
export function queryOf(address: URL): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {}
  for (const name of new Set(address.searchParams.keys())) {
    const values = address.searchParams.getAll(name)
    query[name] = values.length === 1 ? (values[0] ?? '') : values
  }
  return query
}

/** Does what the consent page does when the person presses a button; gives where the browser goes. */
export async function decide(gatehouse: Installed, who: Person, address: URL, approve = true): Promise<URL> {
  const asked = queryOf(address)
  const ask = async (path: 'preview' | 'decision', sent: object) => {
    const answer = await fetch(`${gatehouse.baseUrl}/v1/oauth/authorize/${path}`, {
      method: 'POST',
      headers: fromConsentPage(gatehouse, who),
      body: JSON.stringify(sent),
    })
    return { status: answer.status, headers: answer.headers, body: parseOrKeep(await answer.text()) }
  }
  const shown = expectAnswer(await ask('preview', asked), 200, previewed).scopes
  const answer = await ask('decision', {
    ...asked,
    ...{ approve, scopes: shown?.map(({ scope }) => scope), user_id: who.id },
  })
  return new URL(expectAnswer(answer, 200, decided).redirect_to)
}
