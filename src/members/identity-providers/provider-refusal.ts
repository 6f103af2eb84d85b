/** Why a sign-in by a provider came to nothing. The reason stands in the event and in the console's address. */

export const refusalReasons = [
  'attempt_missing',
  'throttled',
  'provider_unreachable',
  'provider_denied',
  'provider_refused_client',
  'invalid_answer',
  'email_missing',
  'email_unverified',
  'domain_not_allowed',
  'groups_not_listed',
  'no_role',
  'account_exists',
  'account_disabled',
  'identity_taken',
] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** `message` is for whoever reads logs and events: it holds no token and no claim. */
export class ProviderRefusal extends Error {
  readonly reason: RefusalReason

  constructor(reason: RefusalReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ProviderRefusal'
    this.reason = reason
  }
}
