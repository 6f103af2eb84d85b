/** A script that is carried as a file and never run here: importing it gives its path. */
declare module '*/standalone.js' {
  const path: string
  export default path
}
