/**
 * The life of approvals as a model: whatever applications, thieves, administrators and time do in whatever order, an
 * answer is the one that the model gives, and in the end exactly the tokens work that it says.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type TemporaryOAuth, type TestPerson, temporaryOAuth } from '../testing/oauth.ts'

const seconds = { code: 60, access: 120, idle: 300, lifetime: 700 }

let oauth: TemporaryOAuth
let ada: TestPerson
let signedInAt = 0

beforeAll(async () => {
  oauth = await temporaryOAuth({
    oauth_code_seconds: seconds.code,
    oauth_access_seconds: seconds.access,
    oauth_refresh_idle_seconds: seconds.idle,
    oauth_refresh_lifetime_seconds: seconds.lifetime,
  })
  ada = await oauth.person()
  signedInAt = oauth.clock.now()
})
afterAll(() => oauth.remove())

type Operation =
  | { do: 'approve' | 'deactivate' | 'activate' }
  | { do: 'redeem' | 'refresh' | 'revoke refresh' | 'revoke access'; which: number }
  | { do: 'wait'; seconds: number }

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Operation>({ do: 'approve' }) },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constantFrom<'redeem' | 'refresh' | 'revoke refresh' | 'revoke access'>(
        ...(['redeem', 'redeem', 'refresh', 'refresh', 'revoke refresh', 'revoke access'] as const),
      ),
      which: fc.nat(100),
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom<Operation>({ do: 'deactivate' }, { do: 'activate' }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(20, 61, 121, 301) }) },
)

interface Family {
  ended: boolean
  code: string
  codeUsed: boolean
  codeEnds: number
  ends: number
}
interface Refresh {
  family: Family
  secret: string
  used: boolean
  ends: number
}
interface Access {
  family: Family
  secret: string
  revoked: boolean
  ends: number
}

class World {
  readonly clientId: string
  readonly families: Family[] = []
  readonly refreshes: Refresh[] = []
  readonly accesses: Access[] = []
  active = true

  constructor(clientId: string) {
    this.clientId = clientId
  }

  now = (): number => oauth.clock.now() / 1000

  async run(operation: Operation): Promise<void> {
    switch (operation.do) {
      case 'wait':
        return oauth.clock.advance(operation.seconds * 1000)
      case 'approve':
        return await this.#approve()
      case 'activate':
      case 'deactivate':
        return await this.#switch(operation.do)
      case 'redeem':
        return await this.#redeem(chosen(this.families, operation.which))
      case 'refresh':
        return await this.#refresh(chosen(this.refreshes, operation.which))
      case 'revoke access':
        return await this.#revokeAccess(chosen(this.accesses, operation.which))
      case 'revoke refresh':
        return await this.#revokeRefresh(chosen(this.refreshes, operation.which))
    }
  }

  works = ({ family, revoked, ends }: Access): boolean => !family.ended && !revoked && this.now() < ends

  async #approve(): Promise<void> {
    if (!this.active) return
    if (oauth.clock.now() - signedInAt > 1800_000) {
      const browser = await oauth.signInAs('ada@example.com')
      ada = { ...ada, browser, asPage: { cookie: browser.cookie, headers: oauth.fromPage(browser) } }
      signedInAt = oauth.clock.now()
    }
    const [now, code] = [this.now(), await oauth.approve(this.clientId, ada)]
    const ends = now + seconds.lifetime
    this.families.push({ ended: false, code, codeUsed: false, codeEnds: now + seconds.code, ends })
  }

  async #switch(what: 'activate' | 'deactivate'): Promise<void> {
    await oauth.call('POST', `/v1/oauth/clients/${this.clientId}/${what}`, { token: oauth.adminToken })
    this.active = what === 'activate'
  }

  async #redeem(family: Family | undefined): Promise<void> {
    if (family === undefined) return
    const { json } = await oauth.token(oauth.codeRequest(this.clientId, family.code))
    const expected = this.#expected(family, family.codeUsed, family.codeEnds)
    expect(json.error).toBe(expected)
    if (expected !== undefined) return
    family.codeUsed = true
    this.#given(family, json)
  }

  async #refresh(refresh: Refresh | undefined): Promise<void> {
    if (refresh === undefined) return
    const { json } = await oauth.refresh(this.clientId, refresh.secret)
    const expected = this.#expected(refresh.family, refresh.used, Math.min(refresh.ends, refresh.family.ends))
    expect(json.error).toBe(expected)
    if (expected !== undefined) return
    refresh.used = true
    this.#given(refresh.family, json)
  }

  /** The error of presenting something that works once; a second time ends the family. */
  #expected(family: Family, used: boolean, ends: number): string | undefined {
    if (used) family.ended = true
    if (used || family.ended || this.now() >= ends) return 'invalid_grant'
    return this.active ? undefined : 'unauthorized_client'
  }

  #given(family: Family, given: { access_token: string; refresh_token: string }): void {
    const now = this.now()
    this.accesses.push({ family, secret: given.access_token, revoked: false, ends: now + seconds.access })
    const ends = Math.min(now + seconds.idle, family.ends)
    this.refreshes.push({ family, secret: given.refresh_token, used: false, ends })
  }

  async #revokeAccess(access: Access | undefined): Promise<void> {
    if (access === undefined) return
    await this.#revoke(access.secret)
    access.revoked = true
  }

  async #revokeRefresh(refresh: Refresh | undefined): Promise<void> {
    if (refresh === undefined) return
    await this.#revoke(refresh.secret)
    refresh.family.ended = true
  }

  async #revoke(token: string): Promise<void> {
    const { status } = await oauth.call('POST', '/v1/oauth/revoke', { form: { client_id: this.clientId, token } })
    expect(status).toBe(200)
  }
}

const chosen = <Item>(items: readonly Item[], which: number): Item | undefined => items[which % items.length]

test('after any history exactly the valid tokens work', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 10, maxLength: 30, size: 'max' }), async (operations) => {
      const world = new World(await oauth.register())
      for (const each of operations) await world.run(each)
      for (const access of world.accesses) expect(await oauth.works(access.secret)).toBe(world.works(access))
    }),
    { numRuns: 30 },
  )
}, 60_000)
