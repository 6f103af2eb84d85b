/** Follows a redirect that the API built. Another scheme than those of pages is never followed. */
export function followRedirect(redirectTo: string): void {
  if (!/^https?:\/\//.test(redirectTo)) throw new Error('The redirect address is invalid')
  location.assign(redirectTo)
}
