import { ButtonLink } from '../../../components/action/button.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { formatDuration } from '../../../format/time.ts'
import type { Answer, Run } from '../model/conversation.ts'
import { requestIdOf, useLedgerRecord } from './answer-facts.tsx'

/** A refused or failed request: the message for the client, the cause in the gateway, and the remedy. */
export function Refusal({ answer }: { answer: Answer }) {
  const { run } = answer
  const record = useLedgerRecord(answer)
  const id = requestIdOf(run)
  const cause = record?.explanation?.cause ?? record?.request.refusedBy
  return (
    <Notice
      tone={run.status === 429 ? 'warn' : 'bad'}
      title={
        <span className="inline-flex flex-wrap items-center gap-2">
          {run.error?.message ?? 'The request failed.'}
          {run.status !== undefined && run.status >= 400 && (
            <Badge tone={run.status === 429 ? 'warn' : 'bad'}>
              {run.error?.code ? `${run.status} ${run.error.code}` : run.status}
            </Badge>
          )}
        </span>
      }
      action={
        id && (
          <ButtonLink size="small" href={`/requests/${id}`}>
            Explain
          </ButtonLink>
        )
      }
    >
      {remedyOf(run)}
      {cause && <p className="mt-1.5 font-mono text-xs">{cause}</p>}
    </Notice>
  )
}

function remedyOf({ status, error, headers = [] }: Run): string | undefined {
  const seconds = headers.find(([name]) => name === 'retry-after' || name === 'x-ratelimit-reset')?.[1]
  switch (status) {
    case 401:
      return 'Enter a valid virtual key in the settings.'
    case 403:
      return error?.code === 'model_not_allowed'
        ? 'The key does not allow this model.'
        : 'A rule, guard or budget of the gateway refused the request.'
    case 404:
      return 'Choose a model from the list, or add it to the configuration.'
    case 413:
      return 'Remove images, or clear the conversation.'
    case 429:
      return seconds === undefined
        ? 'Wait, then ask again.'
        : `Ask again in ${formatDuration(Number(seconds) * 1_000)}.`
    case 502:
    case 503:
    case 504:
      return 'The provider did not answer. Its attempts are part of the explanation.'
    default:
      return undefined
  }
}
