/** Why a token is on the list of those to review. */
export const reviewReasons = ['owner_left', 'creator_left', 'never_used', 'unused'] as const
export type ReviewReason = (typeof reviewReasons)[number]
