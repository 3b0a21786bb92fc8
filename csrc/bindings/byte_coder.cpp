// Codes bytes with the model of csrc/byte_model.h.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <memory>

#include "bindings/arrays.h"
#include "bit_coder.h"
#include "byte_model.h"

namespace unspool {
namespace {

template <class T> using Table = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> std::vector<T> copied(const Table<T>& table, size_t size, const char* name) {
  require(table.size() == size, std::string(name) + " has " + std::to_string(table.size()) + " values; expected " + std::to_string(size));
  return {table.data(), table.data() + size};
}

constexpr int MOST_BITS = 23;

ByteModel* new_model(int bits, const Table<float>& stretch, const Table<uint16_t>& squash, const Table<uint32_t>& powers, const Table<float>& weights) {
  require(bits >= 2 && bits <= MOST_BITS, "bits must be from 2 to " + std::to_string(MOST_BITS) + "; got " + std::to_string(bits));
  for (size_t i = 0; i < stretch.size(); i++)
    require(stretch.data()[i] >= -16.0f && stretch.data()[i] <= 16.0f, "stretch must hold numbers from -16 to 16");
  for (size_t i = 0; i < weights.size(); i++)
    require(weights.data()[i] >= -16.0f && weights.data()[i] <= 16.0f, "weights must hold numbers from -16 to 16");
  ByteTables tables{copied(stretch, 4096, "stretch"), copied(squash, 8192, "squash"), copied(powers, 2048, "powers"),
                    copied(weights, INPUTS, "weights")};
  try {
    return new ByteModel(bits, std::move(tables));
  } catch (const std::bad_alloc&) {
    throw Refused("not enough memory for " + std::to_string(((uint64_t)1 << bits) * sizeof(Bucket)) + " bytes of counts");
  }
}

// Logits of every byte, n x 256, all finite; nullptr without a network.
const float* checked_logits(const std::optional<Floats>& logits, int64_t n) {
  const float* o = checked(logits, "logits", {n, 256});
  for (int64_t i = 0; o && i < 256 * n; i++) require(o[i] - o[i] == 0.0f, "the logits are not finite numbers");
  return o;
}

using Sums = nb::ndarray<const uint64_t, nb::c_contig, nb::device::cpu>;
constexpr uint64_t MOST_SUM = (uint64_t)1 << 47;

// Cumulative frequencies of the next byte, n x 2 x 257: of a network, and of n-grams or zeros; nullptr without them.
const uint64_t* checked_sums(const std::optional<Sums>& sums, const std::optional<Floats>& logits, int64_t n) {
  require(!sums || !logits, "logits and sums cannot be passed together");
  const uint64_t* all = checked(sums, "sums", {n, 2, 257});
  for (int64_t i = 0; all && i < 2 * n; i++) {
    const uint64_t* each = all + 257 * i;
    if (i % 2 && std::all_of(each, each + 257, [](uint64_t sum) { return sum == 0; })) continue;
    bool rising = each[0] == 0 && each[256] <= MOST_SUM;
    for (int k = 0; k < 256; k++) rising = rising && each[k] < each[k + 1];
    require(rising, "sums must rise from 0 with every byte, to at most 2^47");
  }
  return all;
}

void predict_from(ByteModel& model, const float* o, const uint64_t* sums, size_t i) {
  if (sums) model.set_sums(sums + 2 * 257 * i);
  else model.set_network(o ? o + 256 * i : nullptr);
}

// A call changes the model without the GIL: calls on one object exclude each other. After one that failed, the object stays in use.
class InUse {
 public:
  explicit InUse(bool& flag) : flag(flag) {
    require(!flag, "this coder is in use by another thread, has failed or is finished; make a new one");
    flag = true;
  }
  void release() { flag = false; }

 private:
  bool& flag;
};

constexpr size_t MOST_BYTES = ((size_t)1 << 32) - 1;

struct ByteEncoder {
  std::unique_ptr<ByteModel> model;
  BitEncoder coder;
  size_t coded = 0;
  bool in_use = false;

  ByteEncoder(int bits, Table<float> stretch, Table<uint16_t> squash, Table<uint32_t> powers, Table<float> weights)
      : model(new_model(bits, stretch, squash, powers, weights)) {}

  void encode(nb::bytes data, std::optional<Floats> logits, std::optional<Sums> sums) {
    const float* o = checked_logits(logits, (int64_t)data.size());
    const uint64_t* all = checked_sums(sums, logits, (int64_t)data.size());
    const uint8_t* bytes = (const uint8_t*)data.c_str();
    const size_t n = data.size();
    require(n <= MOST_BYTES - coded, "at most 2^32 - 1 bytes can be coded");
    InUse use(in_use);
    {
      GilReleased released;
      for (size_t i = 0; i < n; i++) {
        predict_from(*model, o, all, i);
        for (int k = 7; k >= 0; k--) {
          const int y = bytes[i] >> k & 1;
          coder.put(y, model->predict());
          model->update(y);
        }
      }
    }
    coded += n;
    use.release();
  }
  size_t size() {
    InUse use(in_use);
    const size_t bytes = coder.out.size();
    use.release();
    return bytes;
  }
  nb::bytes finish() {
    InUse use(in_use);  // for good
    coder.finish();
    return nb::bytes((const char*)coder.out.data(), coder.out.size());
  }
};

struct ByteDecoder {
  std::unique_ptr<ByteModel> model;
  BitDecoder coder;
  size_t decoded = 0;
  bool in_use = false;

  ByteDecoder(int bits, Table<float> stretch, Table<uint16_t> squash, Table<uint32_t> powers, Table<float> weights, nb::bytes payload)
      : model(new_model(bits, stretch, squash, powers, weights)),
        coder({(const uint8_t*)payload.c_str(), (const uint8_t*)payload.c_str() + payload.size()}) {}

  nb::bytes decode(size_t n, std::optional<Floats> logits, std::optional<Sums> sums) {
    require(n == 1 || (!logits && !sums), "with logits or sums, bytes are decoded one by one; got n = " + std::to_string(n));
    const float* o = checked_logits(logits, 1);
    const uint64_t* all = checked_sums(sums, logits, 1);
    require(n <= MOST_BYTES - decoded, "at most 2^32 - 1 bytes can be decoded; got n = " + std::to_string(n));
    std::vector<uint8_t> found(n);
    InUse use(in_use);
    {
      GilReleased released;
      for (auto& byte : found) {
        predict_from(*model, o, all, 0);
        for (int k = 0; k < 8; k++) {
          const int y = coder.take(model->predict());
          model->update(y);
          byte = (uint8_t)(byte << 1 | y);
        }
      }
    }
    decoded += n;
    use.release();
    return nb::bytes((const char*)found.data(), n);
  }
};

}  // namespace

void bind_byte_coder(nb::module_& m) {
  nb::class_<ByteEncoder>(m, "ByteEncoder")
      .def(nb::init<int, Table<float>, Table<uint16_t>, Table<uint32_t>, Table<float>>(), "bits"_a, "stretch"_a.noconvert(),
           "squash"_a.noconvert(), "powers"_a.noconvert(), "weights"_a.noconvert())
      .def("encode", &ByteEncoder::encode, "data"_a, "logits"_a.noconvert().none() = nb::none(), "sums"_a.noconvert().none() = nb::none())
      .def_prop_ro("size", &ByteEncoder::size)
      .def("finish", &ByteEncoder::finish);
  nb::class_<ByteDecoder>(m, "ByteDecoder")
      .def(nb::init<int, Table<float>, Table<uint16_t>, Table<uint32_t>, Table<float>, nb::bytes>(), "bits"_a, "stretch"_a.noconvert(),
           "squash"_a.noconvert(), "powers"_a.noconvert(), "weights"_a.noconvert(), "payload"_a)
      .def("decode", &ByteDecoder::decode, "n"_a, "logits"_a.noconvert().none() = nb::none(), "sums"_a.noconvert().none() = nb::none());
}

}  // namespace unspool
