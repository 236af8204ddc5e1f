import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'
import { launch, type Subject, stop } from './processes.ts'

export type Nginx = Subject & { end(): Promise<void> }

/** Another proxy in the same place, one process as Tollgate is; undefined where it is not installed. */
export async function startNginx(upstreamPort: number, cpus?: string): Promise<Nginx | undefined> {
  if (spawnSync('nginx', ['-v']).error) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-nginx-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, configuration(folder, port, upstreamPort))
  const child = launch(['nginx', '-c', file, '-p', folder], { cpus, stdio: ['ignore', 'ignore', 'inherit'] })
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`)
    await delay(50)
  }
  return {
    name: 'nginx',
    port,
    child,
    async end() {
      await stop(child)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function configuration(folder: string, port: number, upstreamPort: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${folder}/${name};`)
    .join('\n')
  return `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 4096; }
http {
${temporary}
  access_log ${folder}/access.log combined buffer=64k flush=1s;
  keepalive_requests 100000000;
  upstream bench { server 127.0.0.1:${upstreamPort}; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header connection "";
      proxy_set_header x-forwarded-for $remote_addr;
    }
  }
}
`
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
