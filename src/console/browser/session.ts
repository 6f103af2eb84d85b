/**
 * Who is signed in, what they may do, and the CSRF token of their session, which lives in memory only. The console's
 * pages in one browser share a session and tell each other when somebody signs in or out; nothing else is told.
 */
import { signal } from '@preact/signals'
import type { Permission } from '../../identity/permissions.ts'
import type { Caller } from './api/caller.ts'
import { installation } from './installation.ts'

/** Undefined until it is known; null where nobody is signed in. */
export const caller = signal<Caller | null | undefined>(installation.signed_in === false ? null : undefined)

/** Why the sign-in is shown, where it was not the first thing. */
export const sessionNote = signal<string | null>(null)

/** Why a sign-in at an identity provider came to nothing, until something else is shown. */
export const refusedSignIn = signal<string | null>(null)

export const csrfToken = (): string | null => caller.peek()?.csrf_token ?? null

/** Whether the session has ended under the screen, which stays below the sign-in with all that was typed. */
export const isSessionOver = signal(false)

/** Whether another account than the one before has come to this page: what is shown is said to be another's then. */
export const accountChanged = signal(false)

/** Another account than the one whose draft stands on the page; it waits until the person has seen that. */
export const otherAccount = signal<Caller | null>(null)

/** Whose screen is shown, by turns: a screen with its drafts stays as long as this does. */
export const screenGeneration = signal(0)

let draft: Element | null = null

/** Notes in which form somebody has begun to write. */
export function listenToDrafts(): void {
  document.addEventListener('input', ({ target }) => {
    const form = target instanceof Element ? target.closest('main form, dialog form') : null
    if (form !== null && form.closest('dialog.whole') === null) draft = form
  })
}

type News = 'signed in' | 'signed out'
const otherPages = new BroadcastChannel('gatehouse-session')
const tell = (news: News): void => otherPages.postMessage(news)

/** Listens to the console's other pages; `lookAgain` asks the API who is signed in now. */
export function listenToOtherPages(lookAgain: () => Promise<Caller>): void {
  otherPages.onmessage = ({ data }: MessageEvent<News>) => {
    if (data === 'signed out') sessionEnded()
    // Where that fails, what is shown stays until the next call finds out.
    else lookAgain().then(acceptCaller, () => undefined)
  }
}

/** Called where the API, or another page, says that nobody is signed in. */
export function sessionEnded(): void {
  if (caller.peek() == null) {
    caller.value = null
    return
  }
  sessionNote.value = 'Your session has ended. Sign in to continue.'
  isSessionOver.value = true
}

/** Takes who has signed in on this page. */
export function signedIn(found: Caller): void {
  acceptCaller(found)
  tell('signed in')
}

/** Called where the person has ended the session on this page. */
export function signedOut(): void {
  acceptCaller(null)
  tell('signed out')
}

/** Takes who is signed in now; where another person's draft is on the page, that person is told first. */
export function acceptCaller(found: Caller | null): void {
  const [before, now] = [caller.peek()?.user?.id, found?.user?.id]
  const another = before !== undefined && now !== undefined && now !== before
  sessionNote.value = null
  isSessionOver.value = false
  if (another && draft?.isConnected === true) {
    otherAccount.value = found
    return
  }
  otherAccount.value = null
  accountChanged.value = another || (now !== undefined && accountChanged.peek())
  if (another) screenGeneration.value += 1
  caller.value = found
}

/** Takes the other account, and leaves the draft where it is. */
export function continueAsOtherAccount(): void {
  caller.value = otherAccount.peek()
  otherAccount.value = null
}

/** Whether the person who is signed in has a permission. */
export const hasPermission = (permission: Permission): boolean =>
  caller.value?.permissions.includes(permission) ?? false

/**
 * Whether the person who is signed in may open a token. A member opens those that are bound to the member
 * (tokens/visibility.ts). `userId`: of the person to whom the token is bound, if any.
 */
export const opensToken = (userId: string | null): boolean => {
  const signedIn = caller.value
  if (signedIn == null || !hasPermission('tokens:read')) return false
  return signedIn.roles.some((role) => role !== 'member') || (userId !== null && userId === signedIn.user?.id)
}

/** Words for who did something, as events and records name them: `user:<id>`, `token:<id>`. */
export const isCaller = (name: string | null): boolean =>
  name !== null && caller.value?.user != null && name === `user:${caller.value.user.id}`
