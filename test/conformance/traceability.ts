/**
 * Each rule of the OAuth server, where it comes from, and the test that shows it. The rules of the tables of checks
 * stand here under their own names; `traceability.test.ts` holds this list against the tables and the tests against
 * this list.
 *
 * Longer than most: it is one table.
 */

export interface Traced {
  /** The table of the check and its name, or for what no table holds, what holds. */
  rule: string
  source: string
  file: string
  /** The name of the test in that file. */
  test: string
}

const authorize = 'src/oauth/authorize/authorize.test.ts'
const preview = 'src/oauth/authorize/authorize-routes.test.ts'
const token = 'src/oauth/tokens/token-routes.test.ts'
const device = 'src/oauth/device/device-routes.test.ts'
const userCodes = 'src/oauth/device/user-code.test.ts'
const access = 'src/oauth/tokens/access-token.test.ts'
const clients = 'src/oauth/clients/client-routes.test.ts'
const redirects = 'src/oauth/authorize/redirect-uri.test.ts'
const gateway = 'src/gateway/admission/delegated.test.ts'
const state = 'src/fleet/state/oauth-token-row.test.ts'
const attacks = 'test/conformance/attacks.test.ts'
const crafted = 'test/conformance/crafted.test.ts'
const pages = 'test/conformance/browser-client.test.ts'
const libraries = 'test/conformance/libraries.test.ts'

const row = (rule: string, source: string, file: string, test: string): Traced => ({ rule, source, file, test })

const inForm = 'is answered in the form of RFC 6749, never with 422'
const rotation = 'ends the family when it is reused'
const expiry = 'ends codes, access tokens, idle refresh tokens and whole families'
const noClient = 'without a client, with an unknown one, or with one that is not registered for it'
const foreignCode = 'gets nothing with a code of another application, an invented code, or none'
const ended = 'gets nothing once its application is deactivated or its person disabled'
const lookedAt = 'without a client or a token names what is missing'

export const traceability: readonly Traced[] = [
  row('page: one client_id', 'RFC 6749 §4.1.1', authorize, 'for no client_id, an empty one or two'),
  row('page: known client', 'RFC 6749 §4.1.2.1', authorize, 'for a client that is not registered'),
  row('page: one redirect_uri', 'oauth/README.md', authorize, 'for no redirect_uri, an empty one or two'),
  row(
    'page: registered redirect_uri, compared as a string',
    'RFC 6749 §3.1.2.3, RFC 9700 §4.1.3',
    authorize,
    'for a redirect_uri that differs in anything from the registered one',
  ),
  row('authorize: no parameter twice', 'RFC 6749 §3.1', authorize, 'for a parameter that comes twice'),
  row(
    'authorize: state that can be given back',
    'RFC 6749 §4.1.2',
    authorize,
    'for a state that is too long or cannot be returned unchanged',
  ),
  row('authorize: client in service', 'RFC 6749 §4.1.2.1', authorize, 'for a deactivated client'),
  row(
    'authorize: authorization code of this client',
    'RFC 6749 §4.1.2.1',
    authorize,
    'for a client that is not registered for authorization codes',
  ),
  row('authorize: response_type given', 'RFC 6749 §3.1.1', authorize, 'for no response_type'),
  row(
    'authorize: response_type code',
    'RFC 6749 §3.1.1, RFC 9700 §2.1.2',
    authorize,
    'for another response_type than code',
  ),
  row(
    'authorize: code_challenge given, in its form',
    'RFC 7636 §4.2, §4.4.1',
    authorize,
    'for no code_challenge or a malformed one',
  ),
  row(
    'authorize: code_challenge_method S256',
    'RFC 7636 §4.3, §4.4.1',
    authorize,
    'for a code_challenge_method other than S256, or none',
  ),
  row('authorize: scope in its form', 'RFC 6749 §3.3', authorize, 'for a malformed scope'),
  row(
    'authorize: registered scope',
    'oauth/README.md, RFC 6749 §3.3',
    authorize,
    'for a scope that the client is not registered for',
  ),
  row('authorize: active scope', 'oauth/README.md', authorize, 'for a scope that is not active'),
  row('authorize: known resource', 'RFC 8707 §2', authorize, 'for an unknown resource'),

  row(
    'token: no parameter twice',
    'RFC 6749 §3.2',
    token,
    'repeats a known parameter; repeated unknown ones are ignored',
  ),
  row('token: grant_type given', 'RFC 6749 §4.1.3, §6', token, inForm),
  row('token: known grant_type', 'RFC 6749 §5.2', token, inForm),
  row('token: client_id given', 'RFC 6749 §3.2.1', token, inForm),
  row('token: known client', 'RFC 6749 §5.2', token, inForm),
  row('token: grant_type of this client', 'RFC 6749 §5.2', device, noClient),
  row('code: code given', 'RFC 6749 §4.1.3', token, inForm),
  row('code: redirect_uri given', 'oauth/README.md', token, inForm),
  row('code: code_verifier given', 'RFC 7636 §4.5', token, inForm),
  row('code: code_verifier in its form', 'RFC 7636 §4.1', token, 'with a malformed verifier is an invalid request'),
  row('code: known code', 'RFC 6749 §5.2', token, inForm),
  row(
    'code: first use of the code',
    'RFC 6749 §4.1.2, §10.5',
    attacks,
    'a replayed code gives no token and revokes what it gave, on both listeners',
  ),
  row('code: code of this client', 'RFC 6749 §4.1.3', token, 'works for its own client and redirect only'),
  row('code: code in time', 'RFC 6749 §4.1.2', access, expiry),
  row('code: same redirect_uri', 'RFC 6749 §4.1.3', token, 'works for its own client and redirect only'),
  row(
    'code: verifier of the challenge',
    'RFC 7636 §4.6',
    attacks,
    'a code injected into another flow fails at its verifier',
  ),
  row('code: approval in force', 'RFC 6749 §5.2', token, 'of a person who was disabled meanwhile gives nothing'),
  row(
    'code: client in service',
    'oauth/README.md, RFC 6749 §5.2',
    token,
    'gets neither consent nor tokens, keeps its access tokens, and may revoke them',
  ),
  row(
    'code: resource within what was approved',
    'RFC 8707 §2.2',
    token,
    'for a resource that was not approved is an invalid target',
  ),
  row('refresh: refresh_token given', 'RFC 6749 §6', token, inForm),
  row('refresh: known refresh token', 'RFC 6749 §5.2', token, inForm),
  row('refresh: first use of the refresh token', 'RFC 9700 §4.14.2', token, rotation),
  row(
    'refresh: refresh token of this client',
    'RFC 6749 §6, §10.4',
    token,
    'is refused for another client and keeps working for its own',
  ),
  row('refresh: refresh token in time', 'oauth/README.md', access, expiry),
  row('refresh: approval in force', 'RFC 6749 §5.2', access, 'who is disabled loses all access of applications'),
  row(
    'refresh: client in service',
    'oauth/README.md, RFC 6749 §5.2',
    token,
    'gets neither consent nor tokens, keeps its access tokens, and may revoke them',
  ),
  row(
    'refresh: scope within what was approved',
    'RFC 6749 §6',
    token,
    'narrows the scope of the access token and never widens it',
  ),
  row(
    'code: scope still registered and active',
    'oauth/README.md',
    token,
    'with a scope that the client lost meanwhile gives nothing',
  ),
  row(
    'refresh: scope still registered and active',
    'oauth/README.md',
    token,
    'with a scope that the client lost is refused until less is requested',
  ),
  row(
    'refresh: resource within what was approved',
    'RFC 8707 §2.2',
    access,
    'works only for the resources it was given for',
  ),
  row('revoke: no parameter twice', 'RFC 6749 §3.2', token, 'with a parameter twice is an invalid request'),
  row('revoke: client_id given', 'RFC 7009 §2.1, RFC 6749 §3.2.1', token, lookedAt),
  row('revoke: known client', 'RFC 7009 §2.1', token, lookedAt),
  row('revoke: token given', 'RFC 7009 §2.1', token, lookedAt),

  row(
    'redirect URIs are HTTPS, or HTTP on loopback, without user information or fragment',
    'oauth/README.md, RFC 6749 §3.1.2',
    redirects,
    'refuses an address that is ambiguous or leads elsewhere',
  ),
  row(
    'clients are described by the names of RFC 7591, without a secret',
    'RFC 7591 §2',
    clients,
    'a registration answers with the names of RFC 7591 and no secret',
  ),
  row(
    'unrecognised parameters are ignored',
    'RFC 6749 §3.1',
    authorize,
    'ignores unknown parameters, however often they come',
  ),
  row('state comes back exactly', 'RFC 6749 §4.1.2', authorize, 'returns an optional state byte for byte'),
  row(
    'without a scope the registered ones',
    'RFC 6749 §3.3',
    authorize,
    'asks for the active registered scopes without a scope parameter',
  ),
  row(
    'code and state come back with the issuer',
    'RFC 9207 §2',
    preview,
    'redirects an approval with code, state and issuer',
  ),
  row(
    'a denial is access_denied',
    'RFC 6749 §4.1.2.1',
    preview,
    'redirects a denial with access_denied, state and issuer',
  ),
  row(
    'a mix-up is noticed',
    'RFC 9207 §2.4, RFC 9700 §4.4',
    attacks,
    'every redirect names the issuer, which exposes a mix-up of servers',
  ),
  row('the decision cannot be forged', 'RFC 6749 §10.12, RFC 9700 §4.7', attacks, 'is refused for a forged request'),
  row('the decision grants what was shown', 'RFC 6749 §10.2', attacks, 'grants only what the page showed'),
  row(
    'a fault of the server says when to come again',
    'RFC 9110 §10.2.3',
    token,
    'answers in the form of RFC 6749 and costs nobody an approval',
  ),
  row(
    'a JSON parameter is text',
    'oauth/README.md',
    token,
    'has JSON without text where text belongs; other fields are ignored',
  ),
  row('the decision cannot be framed', 'RFC 6749 §10.13, RFC 9700 §4.16', attacks, 'cannot be framed'),
  row('the retired route is gone', 'oauth/README.md', preview, 'the retired route is gone'),
  row(
    'PKCE cannot be left out or weakened',
    'RFC 9700 §2.1.1, §4.8',
    attacks,
    'a code is neither issued nor redeemed without PKCE, nor with plain',
  ),
  row(
    'the token answer has its form',
    'RFC 6749 §5.1',
    token,
    'gives an access and a refresh token that no cache may keep',
  ),
  row('errors have their form, 400 and no-store', 'RFC 6749 §5.2', token, inForm),
  row(
    'parameters in the address do not count',
    'RFC 6749 §2.3.1',
    token,
    'is not repaired by parameters in the address',
  ),
  row(
    'one of two redemptions at once',
    'RFC 6749 §4.1.2',
    attacks,
    'of many concurrent redemptions at most one succeeds, and then every token is revoked',
  ),
  row(
    'one of two refreshes at once',
    'RFC 9700 §4.14.2',
    attacks,
    'of many concurrent refreshes at most one succeeds, and then the family is revoked',
  ),
  row(
    'unknown tokens are revoked with success',
    'RFC 7009 §2.2',
    token,
    'of an invalid or ended token is answered like success',
  ),
  row('the hint is a hint', 'RFC 7009 §2.1', token, 'of an access token ends it alone and informs gateways'),
  row('a refresh token ends its grant', 'RFC 7009 §2.1', token, 'of a refresh token ends everything from the approval'),
  row(
    "nobody revokes another's token",
    'RFC 7009 §2.1',
    attacks,
    'another client can neither use nor revoke a client’s tokens',
  ),
  row('access tokens last their time', 'RFC 6749 §5.1', access, expiry),
  row(
    'the server describes itself',
    'RFC 8414 §2',
    clients,
    'the server metadata lists what the server does, and only active scopes',
  ),
  row(
    'resources describe themselves',
    'RFC 9728 §2',
    gateway,
    'publishes the metadata of the gateway and of its MCP endpoint',
  ),
  row(
    'a library finds the server from the resource',
    'RFC 9728 §5',
    libraries,
    'oauth4webapi discovers the server from the gateway and gets a token for the gateway only',
  ),
  row(
    'a library runs the flow by the metadata',
    'RFC 8414 §3',
    libraries,
    'openid-client discovers the server, gets tokens, calls, refreshes and revokes',
  ),
  row(
    'challenges on both listeners',
    'RFC 6750 §3, RFC 9728 §5.1',
    libraries,
    'oauth4webapi reads the challenges of both listeners',
  ),
  row(
    'a missing scope is named',
    'RFC 6750 §3.1',
    gateway,
    'names a missing scope in a challenge, and sends no challenge with any other 403',
  ),
  row(
    'tokens count in the header alone',
    'RFC 6750 §2, RFC 9700 §4.3.2',
    attacks,
    'are ignored in an address or a body',
  ),
  row('a token opens its resource alone', 'RFC 8707 §2', attacks, 'of one resource are refused by another'),
  row(
    'a token acts as its person, through the application',
    'oauth/README.md',
    gateway,
    'records the person and the application of a request with an OAuth access token',
  ),
  row(
    'tokens follow their person',
    'fleet/README.md',
    access,
    'with a changed role changes what their tokens permit, both ways',
  ),
  row(
    'gateways find tokens in the state',
    'fleet/README.md',
    state,
    "sees an access token as soon as it is committed, as its user's",
  ),
  row(
    'revoked tokens open nothing',
    'fleet/README.md',
    attacks,
    'are refused from the moment a revocation is answered',
  ),
  row(
    'a crash issues nothing twice',
    'events/proof/README.md',
    attacks,
    'a kill -9 between the steps of a redemption leaves no undelivered token active',
  ),
  row(
    'an outage costs nobody an approval',
    'handbook/reference/http.md',
    token,
    'answers in the form of RFC 6749 and costs nobody an approval',
  ),
  row('no secret is kept or logged', 'handbook/tokens.md', attacks, 'no file and no log holds a secret of the flow'),

  row(
    'endpoint: POST alone',
    'RFC 6749 §3.2',
    crafted,
    'answers only POST and CORS preflights, and refuses multipart forms',
  ),
  row(
    'endpoints and metadata: read by pages of any origin',
    'RFC 9700 §2.6, Fetch §3.3',
    pages,
    'a page exchanges a code, refreshes and revokes, and reads error reasons',
  ),
  row(
    'nothing else is read by pages, nothing with credentials',
    'RFC 9700 §2.6',
    pages,
    'CORS exposes nothing else to a page, and nothing with browser credentials',
  ),
  row(
    'endpoint: a member named once',
    'RFC 6749 §3.2, RFC 8259 §4',
    crafted,
    'refuses duplicate parameters in a form or JSON, and parameters split over body and address',
  ),
  row(
    'endpoint: a secret is what it was made for',
    'RFC 9700 §4.8',
    crafted,
    'refuses a secret of another kind, or one with trailing characters',
  ),
  row(
    'decision: CSRF',
    'RFC 6749 §10.12, RFC 9700 §2.1',
    crafted,
    'is refused without JSON and its CSRF token, so no foreign page can send it',
  ),
  row(
    'decision: state goes back as one parameter',
    'RFC 6749 §4.1.2',
    crafted,
    'returns a state whole or not at all, and never in a header or another parameter',
  ),
  row(
    'client: no dynamic registration unless the setting allows it',
    'oauth/README.md',
    crafted,
    'client registration and token introspection require credentials',
  ),
  row(
    'access: reads only, whoever its person is',
    'oauth/README.md',
    crafted,
    'an access token of an owner with every scope changes no configuration',
  ),
  row(
    'metadata: issuer of the settings',
    'RFC 8414 §2',
    crafted,
    'a forged Host header changes neither the issuer nor any metadata address',
  ),
  row('device: no parameter twice', 'RFC 8628 §3.1', device, 'for a parameter that comes twice'),
  row('device: client_id given', 'RFC 8628 §3.1', device, noClient),
  row('device: known client', 'RFC 6749 §5.2', device, noClient),
  row('device: client in service', 'oauth/README.md, RFC 6749 §5.2', device, ended),
  row('device: device code of this client', 'RFC 6749 §5.2', device, noClient),
  row(
    'device: registered and active scope',
    'oauth/README.md, RFC 6749 §3.3',
    device,
    'for a scope that is malformed, unknown or not registered',
  ),
  row('device: known resource', 'RFC 8707 §2', device, 'for an unknown resource'),
  row(
    'codes: a bounded number for each address',
    'RFC 8628 §5.1',
    device,
    'with 429 after 60 in a minute from one address, until the minute is over',
  ),
  row('poll: device_code given', 'RFC 8628 §3.4', device, foreignCode),
  row('poll: known device code', 'RFC 6749 §5.2', device, foreignCode),
  row('poll: device code of this client', 'RFC 8628 §3.4', device, foreignCode),
  row('poll: client in service', 'oauth/README.md, RFC 6749 §5.2', device, ended),
  row('poll: not denied', 'RFC 8628 §3.5', device, 'is told access_denied when the person denies'),
  row('poll: device code in time', 'RFC 8628 §3.5', device, 'is told expired_token when nobody has answered in time'),
  row(
    'poll: not polled too often',
    'RFC 8628 §3.5',
    device,
    'that polls too often is told to slow down, and its interval grows',
  ),
  row('poll: answered by a person', 'RFC 8628 §3.5', device, 'gets codes, and tokens once a person has approved'),
  row(
    'poll: first use of the device code',
    'RFC 6749 §4.1.2, §10.5',
    device,
    'that uses its code twice loses what the code gave',
  ),
  row('poll: approval in force', 'RFC 6749 §5.2', device, ended),
  row(
    'poll: scope still registered and active',
    'oauth/README.md',
    device,
    'gets nothing for a scope that is no longer registered',
  ),
  row(
    'poll: resource within what was approved',
    'RFC 8707 §2.2',
    device,
    'gets no tokens for a resource that was not approved',
  ),
  row(
    'user code: 34 bits, every letter as likely',
    'RFC 8628 §6.1',
    userCodes,
    'a user code is eight letters of twenty, each as likely as another',
  ),
  row('user code: entered in any case', 'RFC 8628 §6.1', userCodes, 'reads a code in any case, with any dash or blank'),
  row(
    'user code: guesses are limited',
    'RFC 8628 §5.1',
    device,
    'a person who guesses user codes is stopped after five, also with a code of their own between the guesses',
  ),
  row(
    'user code: entered is not approved',
    'RFC 8628 §5.4',
    device,
    'needs a person in a browser, their CSRF token, and an approval of what was shown',
  ),
]
