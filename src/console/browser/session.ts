/** Who is signed in, what they may do, and the CSRF token of their session, which lives in memory only. */
import { signal } from '@preact/signals'
import type { Permission } from '../../tokens/permissions.ts'
import type { Caller } from './api/routes.ts'

/** Undefined until it is known; null where nobody is signed in. */
export const caller = signal<Caller | null | undefined>(undefined)

/** Why the sign-in is shown, where it was not the first thing. */
export const sessionNote = signal<string | null>(null)

export const csrfToken = (): string | null => caller.peek()?.csrf_token ?? null

/** Whether the session has ended under the screen, which stays below the sign-in with all that was typed. */
export const sessionOver = signal(false)

/** Called where the API says that nobody is signed in. */
export function sessionEnded(): void {
  if (caller.peek() == null) {
    caller.value = null
    return
  }
  sessionNote.value = 'Your session has ended. Sign in to go on where you were.'
  sessionOver.value = true
}

/** Takes who is signed in now. */
export function signedIn(found: Caller): void {
  caller.value = found
  sessionNote.value = null
  sessionOver.value = false
}

/** Whether the person who is signed in has a permission. */
export const may = (permission: Permission): boolean => caller.value?.permissions.includes(permission) ?? false

/** Words for who did something, as events and records name them: `user:<id>`, `token:<id>`. */
export const isCaller = (name: string | null): boolean =>
  name !== null && caller.value?.user != null && name === `user:${caller.value.user.id}`
