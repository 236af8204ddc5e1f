import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from './certificates.ts'
import { endAfter } from './cleanup.ts'
import { freePorts } from './free-port.ts'
import { until } from './wait.ts'

/** Where Debian installs it; elsewhere tests that need it are skipped. */
export const nginxProgram = '/usr/sbin/nginx'
export const hasNginx = existsSync(nginxProgram)

export type Nginx = { port: number; tlsPort: number; folder: string }

/**
 * An independent server: static files with ranges and validators, `gzip`, HTTP/2 over TLS, a slow and an
 * upgrading location. `files` are the served files.
 */
export async function startNginx(files: Record<string, string>, { cert, key }: Certificate): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-nginx-'))
  const [port = 0, tlsPort = 0] = await freePorts(2)
  // Started by root, its workers are somebody else.
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, 'www'))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, 'www', name), content)
  writeFileSync(join(folder, 'tls.crt'), cert)
  writeFileSync(join(folder, 'tls.key'), key)
  writeFileSync(join(folder, 'nginx.conf'), configuration(folder, port, tlsPort))
  const child = spawn(
    nginxProgram,
    ['-p', folder, '-c', 'nginx.conf', '-e', 'error.log', '-g', 'daemon off;'],
    {
      stdio: 'ignore',
    },
  )
  endAfter('file', async () => {
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
    if (child.exitCode === null) {
      child.kill('SIGTERM')
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  })
  await until('nginx listens', () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`)
    return listens(port)
  })
  return { port, tlsPort, folder }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

function configuration(folder: string, port: number, tlsPort: number): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join('\n  ')
  return `
pid ${folder}/nginx.pid;
worker_processes 1;
events { worker_connections 256; }
http {
  ${paths}
  access_log ${folder}/access.log;
  types { text/html html; text/plain txt; application/octet-stream bin; }
  gzip on;
  gzip_types text/plain;
  gzip_min_length 100;
  client_max_body_size 1m;
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 5;
    root ${folder}/www;
    location /connection { return 200 "$connection $connection_requests"; }
    location /seen { return 200 "$request_method $request_uri $http_host $http_x_forwarded_for $server_protocol"; }
    location /upload { client_body_buffer_size 2m; proxy_pass http://127.0.0.1:${port}/seen; }
    location /old/ { return 301 /new/; }
    location /gone { return 410; }
    location /drop { return 444; }
    location /slow { limit_rate 200k; alias ${folder}/www/large.bin; }
  }
  server {
    listen 127.0.0.1:${tlsPort} ssl http2;
    keepalive_requests 100;
    ssl_certificate ${folder}/tls.crt;
    ssl_certificate_key ${folder}/tls.key;
    root ${folder}/www;
    location /seen { return 200 "$request_method $request_uri $server_protocol $ssl_server_name"; }
  }
}
`
}
