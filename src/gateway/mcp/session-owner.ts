import type { GovernedToken } from '../../tokens/governed-token.ts'

/**
 * Whose an MCP session is: an OAuth grant's, whose access tokens follow each other, or that of a token's own account,
 * which its rotations keep. Clients do not begin a new session when their credential is renewed.
 */
export const sessionOwner = ({ id, accounts, delegation }: GovernedToken): string =>
  delegation === undefined ? `account/${accounts[0]?.id ?? id}` : `grant/${delegation.grantId}`
