/**
 * Whether a URL's host is a valid host name. A URL may have nearly anything there, quotes and `$(…)` included (WHATWG
 * URL section 3.5), which would be dangerous in a file or a shell. Valid names are those of RFC 1123 section 2.1,
 * plus the underscore that names of containers and services have; punycode is accepted.
 */
const name = /^(?=.{1,253}\.?$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?$/i
const bracketed = /^\[[0-9a-f:.]+\]$/i

/** `hostname` as `URL` gives it. */
export const isHostName = (hostname: string): boolean => name.test(hostname) || bracketed.test(hostname)
