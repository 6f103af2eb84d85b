/** Forms of the credentials of models' providers and clouds; credit and reading in `secret-rule.ts`. */
import { alnum, base64, hex, randomRule, rule, type SecretRule, url } from './secret-rule.ts'

/** Providers of models. */
export const models: readonly SecretRule[] = [
  rule(
    'ANTHROPIC_KEY',
    String.raw`sk-ant-[a-z]{2,10}\d{2}-`,
    `${url}{40,200}`,
    'sk-ant-api03-{url 93}AA',
    'anthropic-api-key',
  ),
  rule(
    'OPENAI_KEY',
    'sk-(?:proj|svcacct|admin|None)-',
    `${url}{40,250}`,
    'sk-proj-{url 74}T3BlbkFJ{url 74}',
    'openai-api-key',
  ),
  randomRule('OPENAI_KEY', 'sk-', `${url}{20,250}`, 'sk-{alnum 20}T3BlbkFJ{alnum 20}', 'openai-api-key'),
  rule('BEDROCK_KEY', 'ABSK', `${base64}{100,300}={0,2}`, 'ABSK{base64 128}', 'aws-amazon-bedrock-api-key-long-lived'),
  rule('GOOGLE_KEY', 'AIza', `${url}{35}`, 'AIza{url 35}', 'gcp-api-key'),
  rule('GOOGLE_KEY', String.raw`AQ\.Ab`, `${url}{40,80}`, 'AQ.Ab{url 48}'),
  rule('HUGGINGFACE_TOKEN', '(?:hf|api_org)_', `${alnum}{34}`, 'hf_{alnum 34}', 'huggingface-access-token'),
  rule('XAI_KEY', 'xai-', `${alnum}{60,120}`, 'xai-{alnum 80}'),
  rule('GROQ_KEY', 'gsk_', `${alnum}{40,80}`, 'gsk_{alnum 52}'),
  rule('PERPLEXITY_KEY', 'pplx-', `${alnum}{40,80}`, 'pplx-{alnum 48}', 'perplexity-api-key'),
  rule('REPLICATE_TOKEN', 'r8_', `${alnum}{37,40}`, 'r8_{alnum 37}'),
  rule('NVIDIA_KEY', 'nvapi-', `${url}{40,120}`, 'nvapi-{url 64}'),
  rule('CEREBRAS_KEY', 'csk-', `${alnum}{40,60}`, 'csk-{alnum 48}'),
  rule('LANGSMITH_KEY', 'lsv2_(?:pt|sk)_', `${hex}{32}_${hex}{10}`, 'lsv2_pt_{hex 32}_{hex 10}'),
  rule('PINECONE_KEY', 'pcsk_', `${url}{40,90}`, 'pcsk_{alnum 6}_{alnum 63}'),
  rule('TAVILY_KEY', 'tvly-', `${url}{28,60}`, 'tvly-{alnum 32}'),
  rule('ELEVENLABS_KEY', 'sk_', `${hex}{48}`, 'sk_{hex 48}'),
]

/** Clouds and hosting platforms. */
export const clouds: readonly SecretRule[] = [
  rule('AWS_KEY', '(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])', '[A-Z2-7]{16}', 'AKIA{base32 16}', 'aws-access-token'),
  rule('GOOGLE_KEY', 'GOCSPX-', `${url}{28}`, 'GOCSPX-{url 28}'),
  rule('ALIBABA_KEY', 'LTAI', `${alnum}{16,24}`, 'LTAI{alnum 20}', 'alibaba-access-key-id'),
  rule(
    'CLOUDFLARE_KEY',
    String.raw`v1\.0-`,
    `${hex}{24}-${hex}{146}`,
    'v1.0-{hex 24}-{hex 146}',
    'cloudflare-origin-ca-key',
  ),
  rule('DATABRICKS_TOKEN', 'dapi', `${hex}{32}(?:-[0-9])?`, 'dapi{hex 32}-2', 'databricks-api-token'),
  rule('DIGITALOCEAN_TOKEN', 'do[opr]_v1_', `${hex}{64}`, 'dop_v1_{hex 64}', 'digitalocean-pat'),
  rule(
    'DYNATRACE_TOKEN',
    String.raw`dt0[a-z]\d\d\.`,
    String.raw`${alnum}{24}\.${alnum}{64}`,
    'dt0c01.{ALNUM 24}.{ALNUM 64}',
    'dynatrace-api-token',
  ),
  rule('FLY_TOKEN', 'fo1_', `${url}{43}`, 'fo1_{url 43}', 'flyio-access-token'),
  rule('HEROKU_KEY', 'HRKU-', `${url}{60}`, 'HRKU-AA{url 58}', 'heroku-api-key-v2'),
  rule('NETLIFY_TOKEN', 'nf[pcoub]_', `${alnum}{36}`, 'nfp_{alnum 36}'),
  rule('OPENSHIFT_TOKEN', 'sha256~', `${url}{43}`, 'sha256~{url 43}', 'openshift-user-token'),
  rule(
    'PLANETSCALE_TOKEN',
    'pscale_(?:tkn|oauth|pw)_',
    String.raw`[\w=.\-]{32,64}`,
    'pscale_tkn_{alnum 43}',
    'planetscale-api-token',
  ),
  rule('SCALINGO_TOKEN', 'tk-us-', `${url}{48}`, 'tk-us-{url 48}', 'scalingo-api-token'),
  rule('SUPABASE_KEY', 'sb(?:p_|_secret_)', `${url}{31,50}`, 'sbp_{hex 40}'),
  rule('TAILSCALE_KEY', 'tskey-[a-z]{3,9}-', `${url}{20,60}`, 'tskey-auth-{alnum 17}-{alnum 32}'),
  rule(
    'YANDEX_KEY',
    String.raw`t1\.`,
    String.raw`${url}{5,150}={0,2}\.${url}{86}={0,2}`,
    't1.{url 40}.{url 86}',
    'yandex-access-token',
  ),
  rule('YANDEX_KEY', 'AQVN', `${url}{35,38}`, 'AQVN{url 36}', 'yandex-api-key'),
  rule('YANDEX_KEY', 'YC', `${url}{38}`, 'YC{url 38}', 'yandex-aws-access-token'),
]
