/** What a provider's claims about a person make of them here: may they sign in, in which role and which teams. */
import type { UserRole } from '../people/user-resource.ts'
import { emailSchema } from '../people/user-resource.ts'
import { ProviderRefusal } from './provider-refusal.ts'
import type { Claims } from './relying-party.ts'
import type { KnownProvider } from './stored-identity-provider.ts'

export interface Admission {
  role: UserRole
  /** Whether any rule names a role. Otherwise that role is what a new account gets, and people set others by hand. */
  governsRole: boolean
  /** The teams that the person's groups give. */
  teamIds: readonly string[]
  /** The teams that any rule names: in these the provider decides, in others it does not. */
  governedTeamIds: readonly string[]
}

const google = 'https://accounts.google.com'

/**
 * `provisioned`: the groups that the provider sent by SCIM, where these decide; null: the claim does. Throws
 * `ProviderRefusal` where the person may not sign in.
 */
export function admit(
  { issuer, config }: Pick<KnownProvider, 'issuer' | 'config'>,
  claims: Claims,
  provisioned: readonly string[] | null,
): Admission {
  if (config.domains.length > 0 && !config.domains.includes(domainOf(issuer, claims, config))) {
    throw new ProviderRefusal('domain_not_allowed', 'The person is of no domain that may sign in')
  }
  return admitGroups(config, provisioned ?? groupsOf(claims, config.groups_claim))
}

/** What groups give. Throws `ProviderRefusal` where they give no role. */
export function admitGroups(config: KnownProvider['config'], held: readonly string[]): Admission {
  const fitting = config.groups.filter(({ group }) => held.includes(group))
  const role = fitting.find((rule) => rule.role !== undefined)?.role ?? config.default_role
  if (role === null) throw new ProviderRefusal('no_role', 'No group of the person gives a role')
  return {
    role,
    governsRole: config.groups.some((rule) => rule.role !== undefined),
    teamIds: [...new Set(fitting.flatMap(({ team_ids }) => team_ids))],
    governedTeamIds: [...new Set(config.groups.flatMap(({ team_ids }) => team_ids))],
  }
}

/**
 * The organization that the provider says a person belongs to. At Google this is `hd`: anybody can have an account
 * there with an address of any domain. Elsewhere it is that of the address, if the provider has verified it.
 */
function domainOf(issuer: string, claims: Claims, config: KnownProvider['config']): string {
  if (issuer === google) return typeof claims.hd === 'string' ? claims.hd.toLowerCase() : ''
  return verifiedEmail(claims, config).split('@').at(-1) ?? ''
}

/** The e-mail address, normalised. Throws `ProviderRefusal` where there is none, or the provider does not vouch for it. */
export function verifiedEmail(claims: Claims, config: Pick<KnownProvider['config'], 'accept_unverified_email'>) {
  const email = emailSchema.safeParse(claims.email)
  if (!email.success) throw new ProviderRefusal('email_missing', 'The provider names no e-mail address: ask for email')
  // Some providers write the boolean as text.
  const verified = claims.email_verified === true || claims.email_verified === 'true'
  const unsaid = claims.email_verified === undefined && config.accept_unverified_email
  if (!verified && !unsaid) {
    throw new ProviderRefusal('email_unverified', 'The provider has not verified the e-mail address')
  }
  return email.data
}

/**
 * The groups that a claim names. The claim is looked for by its whole name and then as a path, `realm_access.roles`.
 * Throws `ProviderRefusal` where the provider says that it left them out, as Entra does for people of many groups.
 */
function groupsOf(claims: Claims, name: string): readonly string[] {
  const found = claims[name] ?? name.split('.').reduce<unknown>(memberOf, claims)
  if (found === undefined && memberOf(claims._claim_names, name) !== undefined) {
    throw new ProviderRefusal('groups_not_listed', 'The person is in more groups than the provider lists')
  }
  if (typeof found === 'string') return [found]
  return Array.isArray(found) ? found.filter((group) => typeof group === 'string') : []
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
