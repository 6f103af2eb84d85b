/**
 * libSQL's native addon inside the executable, and the name of the file that it is written to, which contains its
 * hash. The build fills this in; there is none when running from source.
 */
export const embeddedAddon: { path: string; name: string } | null = null
