import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { endAfter } from '../cleanup.ts'
import { freePort } from '../free-port.ts'
import { member, sendJson, startMockServer } from '../mock-server.ts'
import { hasNginx, nginxProgram } from '../nginx.ts'
import { until } from '../wait.ts'

/** An OpenAI-compatible server behind the gateway; its response is the result of its own JSON parser. */
export type JsonReader = {
  readonly name: string
  /** False if the machine lacks the software. */
  readonly isInstalled: boolean
  start(): Promise<string>
}

const folder = fileURLToPath(new URL('.', import.meta.url))

export const jsonReaders: readonly JsonReader[] = [
  { name: 'Node', isInstalled: true, start: startNode },
  { name: 'Go encoding/json', isInstalled: runs('go', 'version'), start: startGo },
  {
    name: 'Python WSGI',
    isInstalled: runs('python3', '-c', 'import wsgiref'),
    start: () => startPython('wsgi'),
  },
  { name: 'Python aiohttp', isInstalled: hasAiohttp(), start: () => startPython('aiohttp') },
  { name: 'nginx before aiohttp', isInstalled: hasNginx && hasAiohttp(), start: startNginxBefore },
]

function hasAiohttp(): boolean {
  return runs('python3', '-c', 'import aiohttp')
}

function runs(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

function startNode(): Promise<string> {
  return startRecorder(({ model, max_tokens: maxTokens, messages }) => {
    const contents = Array.isArray(messages) ? messages.map((message) => member(message, 'content')) : []
    const texts = contents.flatMap((content) =>
      Array.isArray(content) ? content.map((part) => member(part, 'text') ?? '') : [content],
    )
    return Promise.resolve({ model: model ?? '', max_tokens: maxTokens ?? 0, texts })
  })
}

/** The program has no HTTP server, because compiling one takes a minute. */
async function startGo(): Promise<string> {
  const target = mkdtempSync(join(tmpdir(), 'tollgate-go-'))
  endAfter('file', () => rmSync(target, { recursive: true, force: true }))
  const program = join(target, 'reader')
  const built = spawnSync('go', ['build', '-o', program, join(folder, 'main.go')], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`go build failed: ${built.stderr}`)
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] })
  endWithFile(child)
  const waiting: ((line: string) => void)[] = []
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line))
  return startRecorder(async (_, text) => {
    const line = await new Promise<string>((resolve) => {
      waiting.push(resolve)
      child.stdin.write(`${Buffer.from(text).toString('base64')}\n`)
    })
    return JSON.parse(line)
  })
}

async function startRecorder(
  read: (body: Record<string, unknown>, text: string) => Promise<object>,
): Promise<string> {
  const server = await startMockServer(({ text }, response) => {
    void read(JSON.parse(text), text).then((record) => {
      const message = { role: 'assistant', content: JSON.stringify(record) }
      const body = { object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] }
      sendJson(response, { status: 200, body })
    })
  }, 'file')
  return server.url
}

async function startPython(kind: 'wsgi' | 'aiohttp'): Promise<string> {
  const child = spawn('python3', [join(folder, 'server.py'), kind], { stdio: ['ignore', 'pipe', 'inherit'] })
  endWithFile(child)
  const port = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve)
    child.once('exit', (code) => reject(new Error(`${kind} ended with ${code}`)))
  })
  return `http://127.0.0.1:${port}`
}

async function startNginxBefore(): Promise<string> {
  const upstream = await startPython('aiohttp')
  const target = mkdtempSync(join(tmpdir(), 'tollgate-nginx-'))
  endAfter('file', () => rmSync(target, { recursive: true, force: true }))
  chmodSync(target, 0o755)
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(
    join(target, 'nginx.conf'),
    `pid ${target}/nginx.pid; worker_processes 1; events { worker_connections 64; }
http {
  ${temporary.map((name) => `${name}_temp_path ${target}/${name};`).join(' ')}
  access_log off;
  server { listen 127.0.0.1:${port}; location / { proxy_pass ${upstream}; } }
}`,
  )
  const args = ['-p', target, '-c', 'nginx.conf', '-e', 'error.log', '-g', 'daemon off;']
  endWithFile(spawn(nginxProgram, args, { stdio: 'ignore' }))
  const url = `http://127.0.0.1:${port}`
  await until('nginx listens', () => existsSync(join(target, 'nginx.pid')) && reaches(url))
  return url
}

function reaches(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false,
  )
}

function endWithFile(child: ChildProcess): void {
  endAfter('file', async () => {
    if (child.exitCode !== null) return
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
    child.kill('SIGTERM')
    await ended
  })
}
