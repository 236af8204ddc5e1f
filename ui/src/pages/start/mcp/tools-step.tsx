import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Play, Wrench } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import { useEnteredKey } from '../../../api/entered-key.ts'
import { type McpCall, type McpTool, openMcpSession } from '../../../api/mcp-session.ts'
import type { GatewayState } from '../../../api/state.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { classNames } from '../../../components/class-names.ts'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { messageOf } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input, TextArea } from '../../../components/form/input.tsx'
import { formatDuration } from '../../../format/time.ts'
import { exampleOf } from './example-arguments.ts'

/** Tools of the MCP endpoint, and the first call of one. */
export function ToolsStep({ state }: { state: GatewayState | undefined }) {
  const listener = state?.listeners.find(({ serves }) => serves.includes('mcp'))
  const [key, enterKey] = useEnteredKey()
  const [tool, setTool] = useState<McpTool>()
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['start-tools', listener?.gateway, key],
    queryFn: () => listTools(listener?.gateway ?? '', key),
    enabled: listener !== undefined,
    retry: false,
    gcTime: 0,
  })
  if (!listener) return <p className="text-sm text-ink-soft">Add a server first: it opens the port.</p>
  if (error)
    return (
      <div className="space-y-4">
        <Notice tone="bad" title={messageOf(error)}>
          Check that the server runs, and that its address or command is right. If the endpoint requires a
          key, enter one.
        </Notice>
        <div className="flex flex-wrap items-end gap-2">
          <Field label="Virtual key">
            {(control) => (
              <Input
                {...control}
                type="password"
                value={key}
                className="font-mono"
                onChange={(event) => enterKey(event.target.value)}
              />
            )}
          </Field>
          <Button busy={isFetching} onClick={() => void refetch()}>
            Try again
          </Button>
        </div>
      </div>
    )
  if (!data) return <SkeletonLines count={4} />
  return (
    <div className="space-y-4">
      <p className="text-sm text-ink-soft">
        {data.length} live tools at <code>{listener.url}/mcp</code>. Choose one.
      </p>
      <ul
        aria-label="Tools"
        className="max-h-64 divide-y divide-line overflow-y-auto rounded-lg border border-line"
      >
        {data.map((other) => (
          <li key={other.name}>
            <button
              type="button"
              aria-pressed={tool === other}
              onClick={() => setTool(other)}
              className={classNames(
                'flex w-full items-start gap-2.5 px-3 py-2 text-left -outline-offset-2 hover:bg-hover',
                tool === other && 'bg-accent-soft',
              )}
            >
              <Wrench className="mt-0.5 size-4 shrink-0 text-ink-faint" aria-hidden />
              <span className="min-w-0">
                <span className="block font-mono text-sm break-words">{other.name}</span>
                <span className="line-clamp-2 text-xs text-ink-soft">{other.description}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {tool && <CallForm key={tool.name} gateway={listener.gateway} tool={tool} />}
    </div>
  )
}

function CallForm({ gateway, tool }: { gateway: string; tool: McpTool }) {
  const queries = useQueryClient()
  const [key] = useEnteredKey()
  const [text, setText] = useState(() => JSON.stringify(exampleOf(tool.inputSchema), null, 2))
  const [busy, setBusy] = useState(false)
  const [call, setCall] = useState<McpCall>()
  const [problem, setProblem] = useState<string>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setProblem(undefined)
    setBusy(true)
    try {
      setCall(await callTool(gateway, key, tool.name, JSON.parse(text) as object))
      void queries.invalidateQueries({ queryKey: ['succeeded'] })
    } catch (error) {
      setProblem(error instanceof SyntaxError ? 'Arguments must be a JSON object.' : messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form onSubmit={submit} className="space-y-3">
      <Field label={`Arguments of ${tool.name}`} error={problem}>
        {(control) => (
          <TextArea
            {...control}
            rows={Math.min(10, text.split('\n').length + 1)}
            spellCheck={false}
            className="font-mono text-xs"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <Button type="submit" tone="primary" icon={Play} busy={busy}>
        Call tool
      </Button>
      <div role="status">{call && <CallResult call={call} />}</div>
    </form>
  )
}

function CallResult({ call }: { call: McpCall }) {
  const { outcome, requestId, durationMs } = call
  return (
    <div className="space-y-3">
      {outcome.kind === 'error' ? (
        <Notice tone="bad" title={outcome.message} />
      ) : (
        <CodeBlock label="result" text={JSON.stringify(outcome.result, null, 2)} />
      )}
      <p className="flex flex-wrap items-center gap-3 text-xs text-ink-faint">
        {formatDuration(durationMs)}
        {requestId && (
          <Link href={`/requests/${requestId}`} className="text-accent underline-offset-2 hover:underline">
            Open request
          </Link>
        )}
      </p>
      {outcome.kind === 'result' && (
        <div className="flex flex-wrap gap-2">
          <ButtonLink href="/clients?client=claude-code" tone="primary">
            Set up a client
          </ButtonLink>
          <ButtonLink href="/mcp/playground">Open the playground</ButtonLink>
          <ButtonLink href="/mcp/access">Restrict tools</ButtonLink>
        </div>
      )}
    </div>
  )
}

const maxTools = 500

async function listTools(gateway: string, key: string): Promise<readonly McpTool[]> {
  const session = await openMcpSession(gateway, key)
  try {
    const tools: McpTool[] = []
    let cursor: unknown
    do {
      const { outcome } = await session.call('tools/list', cursor === undefined ? {} : { cursor })
      if (outcome.kind === 'error') throw new Error(outcome.message)
      const page = outcome.result as { tools?: readonly McpTool[]; nextCursor?: unknown }
      tools.push(...(page.tools ?? []))
      cursor = page.nextCursor
    } while (cursor !== undefined && tools.length < maxTools)
    return tools
  } finally {
    await session.close()
  }
}

async function callTool(gateway: string, key: string, name: string, values: object): Promise<McpCall> {
  const session = await openMcpSession(gateway, key)
  try {
    return await session.call('tools/call', { name, arguments: values })
  } finally {
    await session.close()
  }
}
