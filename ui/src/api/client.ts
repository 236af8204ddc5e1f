/** Error reply of the gateway, or no reply at all (`status` 0). */
export class ApiError extends Error {
  readonly status: number
  /** `x-request-id` of the reply, for the log of the gateway. */
  readonly requestId: string | undefined
  /** Body of the reply as JSON, where it has more than a message. */
  readonly body: unknown

  constructor(message: string, status: number, requestId?: string, body?: unknown) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.requestId = requestId
    this.body = body
  }
}

export type ApiCall = {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  /** Expected revision: sent as `If-Match`. */
  readonly revision?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** False for a call that reports a missing login, in place of a wait for a new one. */
  readonly waitsForLogin?: boolean
}

/** A call that requires a login. `isRead`: it changes nothing. */
export type UnauthorizedCall = { readonly isRead: boolean; readonly signal?: AbortSignal | undefined }

/** Waits for a login; resolves with whether to repeat the call. Set by the session part of the shell. */
let onUnauthorized: ((call: UnauthorizedCall) => Promise<boolean>) | undefined

export function setUnauthorizedListener(listener: typeof onUnauthorized): void {
  onUnauthorized = listener
}

/** Calls the admin API and returns the JSON body. Throws `ApiError`. */
export async function api<Result>(path: string, call: ApiCall = {}): Promise<Result> {
  const response = await apiResponse(path, call)
  if (response.status === 204) return undefined as Result
  return (await response.json()) as Result
}

/** Calls the admin API and returns the successful response, for streams and files. Throws `ApiError`. */
export async function apiResponse(path: string, call: ApiCall = {}): Promise<Response> {
  const { method = 'GET', signal, waitsForLogin = true } = call
  const response = await send(path, call)
  if (response.ok) return response
  const isRepeated = waitsForLogin && requiresLogin(response) && onUnauthorized !== undefined
  if (!isRepeated || !(await onUnauthorized?.({ isRead: method === 'GET', signal })))
    throw requiresLogin(response) ? sessionEnded() : await errorOf(response)
  const repeated = await send(path, call)
  if (repeated.ok) return repeated
  throw await errorOf(repeated)
}

async function send(path: string, call: ApiCall): Promise<Response> {
  const { method = 'GET', body, revision, signal } = call
  try {
    return await fetch(addressOf(path, call.query), {
      method,
      credentials: 'same-origin',
      headers: {
        accept: 'application/json, text/event-stream;q=0.9, */*;q=0.5',
        'x-tollgate-console': '1',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(revision === undefined ? {} : { 'if-match': `"${revision}"` }),
        ...call.headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError('The gateway does not answer. Check that it runs and is reachable.', 0)
  }
}

/** The error of a refused call that is not repeated. A missing login is reported to the shell. */
export async function refusalOf(response: Response): Promise<ApiError> {
  if (!requiresLogin(response)) return await errorOf(response)
  void onUnauthorized?.({ isRead: false })
  return sessionEnded()
}

function sessionEnded(): ApiError {
  return new ApiError('Your session has ended. Log in, then try again.', 401)
}

/** Whether the session of the browser has ended. Refusals of keys and of basic authentication differ. */
function requiresLogin({ status, headers }: Response): boolean {
  return status === 401 && headers.get('www-authenticate')?.startsWith('Cookie ') === true
}

function addressOf(path: string, query: ApiCall['query'] = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') parameters.set(name, String(value))
  const text = parameters.toString()
  return text === '' ? path : `${path}?${text}`
}

async function errorOf(response: Response): Promise<ApiError> {
  const requestId = response.headers.get('x-request-id') ?? undefined
  const text = await response.text().catch(() => '')
  const body = parsed(text)
  return new ApiError(
    messageOf(body) ?? `The gateway answered with status ${response.status}.`,
    response.status,
    requestId,
    body,
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function messageOf(body: unknown): string | undefined {
  if (typeof body === 'string') return body
  if (typeof body !== 'object' || body === null) return undefined
  const { detail, message, error } = body as Record<string, unknown>
  if (typeof detail === 'string') return detail
  if (typeof message === 'string') return message
  return typeof error === 'object' ? messageOf(error) : undefined
}
