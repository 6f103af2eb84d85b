/**
 * libSQL's native addon inside the executable, and the name of the file it is placed in, which says its content; the build
 * fills it in, from source there is none.
 */
export const embeddedAddon: { path: string; name: string } | null = null
