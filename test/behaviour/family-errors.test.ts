/**
 * The refusals of the gateway on every family, row by row. What needs a provider is in `families.test.ts`, what needs
 * limits with the limits.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { type FamilyFixture, families } from '../fakes/families.ts'
import { api, createToken, installation, revoke } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'
import { eventsOfRequest, outcomesOf } from '../support/recorded.ts'

setDefaultTimeout(120_000)

let gatehouse: Gatehouse
const tokens = { good: '', revoked: '', model: '', provider: '', runtime: '', auditor: '' }

beforeAll(async () => {
  gatehouse = await startGatehouse()
  const { gatewayId, teamId } = await installation(gatehouse)
  const make = async (fields: object = {}) => (await createToken(gatehouse, fields)).token_value
  const other = { name: 'other', kind: 'openai', base_url: 'https://api.example.com/v1', api_key: 'sk-other' }
  expect((await api(gatehouse, '/v1/catalog/providers', { body: other })).status).toBe(201)
  const revoked = await createToken(gatehouse)
  await revoke(gatehouse, revoked.id)
  Object.assign(tokens, {
    good: await make(),
    revoked: revoked.token_value,
    model: await make({ bindings: { model_filter: ['other'] } }),
    provider: await make({ bindings: { provider: 'other' } }),
    runtime: await make({ purpose: 'gateway_runtime', bindings: { gateway_id: gatewayId, team_id: teamId } }),
    auditor: await make({ roles: ['auditor'] }),
  })
}, 240_000)
afterAll(() => gatehouse?.stop())

interface Row {
  status: number
  code: string
  /** As the envelope says it, and as messages do. */
  type: [envelope: string, messages: string]
  token?: keyof typeof tokens | null
  model?: string
  change?(request: Sent, fixture: FamilyFixture): Partial<Sent> & { headers?: Record<string, string> }
  /** Where the row holds. */
  families?: (fixture: FamilyFixture) => boolean
}

interface Sent {
  body: Uint8Array<ArrayBuffer>
  contentType: string
}

const invalid: Row['type'] = ['invalid_request_error', 'invalid_request_error']
const unauthenticated: Row['type'] = ['authentication_error', 'authentication_error']
const denied: Row['type'] = ['access_denied', 'permission_error']
const formFamilies: ReadonlySet<string> = new Set(['transcriptions', 'translations', 'image_edits'])
const isForm = ({ family }: FamilyFixture) => formFamilies.has(family)
const isJson = (fixture: FamilyFixture) => !isForm(fixture)
const hasSessions = ({ family }: FamilyFixture) => family === 'chat' || family === 'responses'
const withMember = (body: Uint8Array, json: string) =>
  new Uint8Array(Buffer.from(Buffer.from(body).toString().replace(/\}$/, `,${json}}`)))

const rows: Readonly<Record<string, Row>> = {
  'no credential': { status: 401, code: 'missing_api_key', type: unauthenticated, token: null },
  'a revoked token': { status: 401, code: 'invalid_api_token', type: unauthenticated, token: 'revoked' },
  'a token bound to other models': { status: 403, code: 'tokens.model_not_allowed', type: denied, token: 'model' },
  'a token bound to another provider': {
    status: 403,
    code: 'tokens.provider_not_allowed',
    type: denied,
    token: 'provider',
  },
  'a runtime token': { status: 403, code: 'tokens.purpose_not_allowed', type: denied, token: 'runtime' },
  'a token without the permission': { status: 403, code: 'permission_denied', type: denied, token: 'auditor' },
  'a model nobody knows': {
    status: 404,
    code: 'model_not_found',
    type: ['invalid_request_error', 'not_found_error'],
    model: 'nobody-knows',
  },
  'a body cut off': {
    status: 400,
    code: 'invalid_json',
    type: invalid,
    change: ({ body }) => ({ body: body.slice(0, -1) }),
    families: isJson,
  },
  'a form cut off': {
    status: 400,
    code: 'invalid_form',
    type: invalid,
    change: ({ body }) => ({ body: body.slice(0, -8) }),
    families: isForm,
  },
  'a body of another type': {
    status: 415,
    code: 'unsupported_media_type',
    type: invalid,
    change: () => ({ contentType: 'text/plain' }),
  },
  'an unknown encoding': {
    status: 415,
    code: 'unsupported_media_type',
    type: invalid,
    change: () => ({ headers: { 'content-encoding': 'snappy' } }),
  },
  'a body that is too large': {
    status: 413,
    code: 'request_too_large',
    type: ['invalid_request_error', 'request_too_large'],
    change: ({ body }) => ({ body: new Uint8Array(Buffer.concat([body, Buffer.alloc(27 * 1024 * 1024, ' ')])) }),
  },
  'a member given twice': {
    status: 400,
    code: 'invalid_json',
    type: invalid,
    change: ({ body }) => ({ body: withMember(body, '"model":"simulator/lorem"') }),
    families: isJson,
  },
  'a model that is none': {
    status: 422,
    code: 'invalid_parameter',
    type: invalid,
    model: '',
  },
  'sessions that differ': {
    status: 422,
    code: 'session_id_mismatch',
    type: invalid,
    change: ({ body }) => ({ body: withMember(body, '"session_id":"a"'), headers: { 'x-session-id': 'b' } }),
    families: hasSessions,
  },
}

const errorBody = z.looseObject({
  type: z.literal('error').optional(),
  error: z.looseObject({ type: z.string(), code: z.string(), message: z.string().min(1) }),
  request_id: z.string(),
})

for (const [what, row] of Object.entries(rows)) {
  for (const fixture of families.filter(row.families ?? (() => true))) {
    test(`${fixture.family}: ${what} is ${row.status} ${row.code} in the form of the family, and recorded`, async () => {
      const requestId = `refused-${crypto.randomUUID()}`
      const plain = fixture.request(row.model ?? 'simulator/echo', false)
      const { headers = {}, ...changed } = row.change?.(plain, fixture) ?? {}
      const { body, contentType } = { ...plain, ...changed }
      const token = row.token === undefined ? tokens.good : row.token === null ? null : tokens[row.token]
      const response = await fetch(gatehouse.gatewayUrl + fixture.path, {
        method: 'POST',
        headers: {
          'content-type': contentType,
          'x-request-id': requestId,
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
        },
        body,
      })
      const text = await response.text()
      const told = errorBody.parse(JSON.parse(text))
      const onMessages = fixture.errors === 'messages'
      expect({
        status: response.status,
        code: told.error.code,
        type: told.error.type,
        form: told.type,
        id: told.request_id,
        header: response.headers.get('x-request-id'),
        messagesHeader: response.headers.get('request-id'),
        verdict: response.headers.get('x-service-verdict'),
        source: response.headers.get('x-service-error-source'),
        retry: response.headers.get('x-should-retry'),
      }).toEqual({
        status: row.status,
        code: row.code,
        type: row.type[onMessages ? 1 : 0],
        form: onMessages ? 'error' : undefined,
        id: requestId,
        header: requestId,
        messagesHeader: onMessages ? requestId : null,
        verdict: 'DENY',
        source: 'gateway',
        retry: 'false',
      })
      for (const secret of Object.values(tokens)) expect(text).not.toContain(secret)
      const outcomes = outcomesOf(await eventsOfRequest(gatehouse, requestId), requestId)
      expect(outcomes.map(({ verdict, reason_code }) => `${verdict} ${reason_code}`)).toEqual([`deny ${row.code}`])
    })
  }
}

test('an unsupported method is 405 with Allow, in the form of the path’s family', async () => {
  for (const fixture of families) {
    const response = await fetch(gatehouse.gatewayUrl + fixture.path, { method: 'PUT' })
    const told = errorBody.parse(await response.json())
    expect([fixture.path, response.status, response.headers.get('allow')]).toEqual([fixture.path, 405, 'POST'])
    expect([told.error.code, told.type]).toEqual([
      'method_not_allowed',
      fixture.errors === 'messages' ? 'error' : undefined,
    ])
  }
})
