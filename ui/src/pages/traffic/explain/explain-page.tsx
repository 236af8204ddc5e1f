import { useQuery } from '@tanstack/react-query'
import { Signpost } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useSearchParams } from 'wouter'
import { useGatewayState } from '../../../api/state.ts'
import { explainRoute } from '../../../api/tools/explain-route.ts'
import { Button } from '../../../components/action/button.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input, TextArea } from '../../../components/form/input.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { type RequestDraft, readDraft, readHeaders, writeDraft } from './explain-address.ts'
import { Explanation } from './explanation.tsx'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

/** The route of a request that is entered, with policies, and the reasons for which other routes lose. */
export default function ExplainPage() {
  const [parameters, setParameters] = useSearchParams()
  const asked = readDraft(parameters)
  const headers = readHeaders(asked.headers)
  const isReady = asked.host !== '' && headers.kind === 'headers'
  const explanation = useQuery({
    queryKey: ['explain-route', asked],
    queryFn: ({ signal }) => {
      const { gateway, method, host, path } = asked
      const fields = headers.kind === 'headers' ? headers.headers : {}
      return explainRoute({ ...(gateway !== '' && { gateway }), method, host, path, headers: fields }, signal)
    },
    enabled: isReady,
  })
  return (
    <Page
      title="Where would it go?"
      about="Enter a request. The gateway names the route that receives it, its policies, and why other routes do not."
    >
      <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[26rem_minmax(0,1fr)]">
        <RequestForm
          key={parameters.toString()}
          draft={asked}
          onSubmit={(draft) => {
            if (writeDraft(draft) === writeDraft(asked)) void explanation.refetch()
            else setParameters(new URLSearchParams(writeDraft(draft)))
          }}
        />
        <div aria-live="polite" className="min-w-0 space-y-6">
          {!isReady ? (
            <Card>
              <EmptyState icon={Signpost} title="No request yet">
                Method, host and path are enough. Nothing is sent: the gateway answers from its configuration.
              </EmptyState>
            </Card>
          ) : explanation.error ? (
            <ErrorState error={explanation.error} onRetry={() => void explanation.refetch()} />
          ) : explanation.data === undefined ? (
            <Card>
              <SkeletonLines count={6} />
            </Card>
          ) : (
            <Explanation explanation={explanation.data} />
          )}
        </div>
      </div>
    </Page>
  )
}

function RequestForm({ draft, onSubmit }: { draft: RequestDraft; onSubmit(draft: RequestDraft): void }) {
  const { data } = useGatewayState()
  const [entered, setEntered] = useState(draft)
  const [tried, setTried] = useState(false)
  const headers = readHeaders(entered.headers)
  const gateways = [...new Set((data?.listeners ?? []).map(({ gateway }) => gateway))]
  if (entered.gateway !== '' && !gateways.includes(entered.gateway)) gateways.push(entered.gateway)
  const set = (change: Partial<RequestDraft>) => setEntered({ ...entered, ...change })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (entered.host.trim() !== '' && headers.kind === 'headers')
      onSubmit({ ...entered, host: entered.host.trim(), path: entered.path.trim() || '/' })
  }
  return (
    <Card title="Request">
      <form noValidate onSubmit={submit} className="space-y-4">
        <Field label="Gateway" help="A request reaches a gateway by its port.">
          {(control) => (
            <Select
              {...control}
              value={entered.gateway}
              options={[
                { value: '', label: 'The default one' },
                ...gateways.map((name) => ({ value: name, label: name })),
              ]}
              onChange={(gateway) => set({ gateway })}
            />
          )}
        </Field>
        <div className="grid grid-cols-[7.5rem_minmax(0,1fr)] gap-3">
          <Field label="Method">
            {(control) => (
              <Select
                {...control}
                value={entered.method}
                options={[...new Set([...methods, entered.method])].map((value) => ({ value, label: value }))}
                onChange={(method) => set({ method })}
              />
            )}
          </Field>
          <Field
            label="Host"
            required
            error={
              tried && entered.host.trim() === '' ? 'A host is required, such as api.example.com' : undefined
            }
          >
            {(control) => (
              <Input
                {...control}
                value={entered.host}
                placeholder="api.example.com"
                spellCheck={false}
                onChange={(event) => set({ host: event.target.value })}
              />
            )}
          </Field>
        </div>
        <Field label="Path" help="With the query, if routes depend on it.">
          {(control) => (
            <Input
              {...control}
              value={entered.path}
              placeholder="/v1/chat/completions?debug=1"
              className="font-mono text-xs"
              spellCheck={false}
              onChange={(event) => set({ path: event.target.value })}
            />
          )}
        </Field>
        <Field
          label="Headers"
          help="One per line: x-team: search"
          error={headers.kind === 'mistake' ? headers.message : undefined}
        >
          {(control) => (
            <TextArea
              {...control}
              rows={3}
              className="font-mono text-xs"
              spellCheck={false}
              value={entered.headers}
              onChange={(event) => set({ headers: event.target.value })}
            />
          )}
        </Field>
        <Button type="submit" tone="primary" icon={Signpost}>
          Find the route
        </Button>
      </form>
    </Card>
  )
}
