/**
 * Keeps a form with a file on disk until all of its lines have passed, because nothing of it may leave before. What
 * was kept is mapped into memory to be sent, so that the kernel reads it piece by piece.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

const pieceBytes = 256 * 1024
const encoder = new TextEncoder()

/** Removes what a killed process left behind, and makes the directory. */
export function emptySpool(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true, mode: 0o700 })
}

/** A form on disk: fields, and a file whose lines are added one by one. */
export class Spool {
  readonly contentType: string
  readonly #path: string
  readonly #boundary: string
  readonly #file: FileHandle
  #pieces: Uint8Array[] = []
  #pending = 0

  private constructor(path: string, boundary: string, file: FileHandle) {
    this.#path = path
    this.#boundary = boundary
    this.#file = file
    this.contentType = `multipart/form-data; boundary=${boundary}`
  }

  static async create(directory: string, id: string): Promise<Spool> {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const path = join(directory, `${id}.form`)
    return new Spool(path, `gatehouse-${id}`, await open(path, 'wx', 0o600))
  }

  async addField(name: string, value: string): Promise<void> {
    await this.#add(`--${this.#boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
  }

  /** Begins the file; lines follow, and `endFile`. */
  async beginFile(filename: string): Promise<void> {
    const disposition = `Content-Disposition: form-data; name="file"; filename="${filename}"`
    await this.#add(`--${this.#boundary}\r\n${disposition}\r\nContent-Type: application/jsonl\r\n\r\n`)
  }

  async addLine(line: string): Promise<void> {
    await this.#add(`${line}\n`)
  }

  async endFile(): Promise<void> {
    await this.#add('\r\n')
  }

  /** Ends the form and gives all of it. */
  async whole(): Promise<Uint8Array> {
    await this.#add(`--${this.#boundary}--\r\n`)
    await this.#write()
    return Bun.mmap(this.#path, { shared: false })
  }

  /** Removes it from the disk. What was mapped can still be read. */
  async remove(): Promise<void> {
    await this.#file.close()
    await rm(this.#path, { force: true })
  }

  async #add(text: string): Promise<void> {
    const bytes = encoder.encode(text)
    this.#pieces.push(bytes)
    this.#pending += bytes.length
    if (this.#pending >= pieceBytes) await this.#write()
  }

  async #write(): Promise<void> {
    const bytes = Buffer.concat(this.#pieces, this.#pending)
    this.#pieces = []
    this.#pending = 0
    for (let at = 0; at < bytes.length; ) at += (await this.#file.write(bytes, at)).bytesWritten
  }
}
